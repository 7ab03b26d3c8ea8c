#include "text/decide_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/number_range.h"
#include "base/request_error.h"
#include "engine/engine.h"
#include "text/decision_prompt.h"
#include "text/make_request.h"

namespace paceline {
namespace {

constexpr NumberRange kTemperatures = {0.01, 100};

void check_count(const std::string& name, size_t count, size_t least, size_t most) {
  if (count >= least && count <= most) return;
  throw invalid_field(name, fmt::format("found {}, expected {} to {}", count, least, most));
}

void check_choices(const std::vector<QuestionOption>& options, const std::string& name) {
  check_count(name, options.size(), 2, kMaxChoiceOptions);
  std::map<ChoiceValue, size_t> known;
  for (size_t i = 0; i < options.size(); ++i) {
    const auto [first, is_new] = known.emplace(options[i].value, i);
    if (is_new) continue;
    throw invalid_field(
        fmt::format("{}[{}]", name, i),
        fmt::format("the same value as {}[{}], expected values that differ", name, first->second));
  }
}

void check_question(const DecisionQuestion& question, const std::string& name) {
  switch (question.kind) {
    case QuestionKind::choice:
      return check_choices(question.options, name + ".choices");
    case QuestionKind::score:
      return check_count(name + ".levels", question.options.size(), 2, kMaxScoreLevels);
    case QuestionKind::predicate:
      break;
  }
  if (!question.options.empty()) check_count(name + ".options", question.options.size(), 2, 2);
  const bool is_described =
      std::any_of(question.options.begin(), question.options.end(),
                  [](const QuestionOption& option) { return !option.description.empty(); });
  if (question.instructions.empty() && !is_described) {
    throw invalid_field(name + ".instructions", "empty, expected what is asked");
  }
}

// Log-probabilities, with a number for that of probability 0.
std::vector<double> finite(const std::vector<float>& logprobs) {
  constexpr double kLeast = -1e4;
  std::vector<double> numbers;
  for (const float logprob : logprobs) numbers.push_back(std::max(double{logprob}, kLeast));
  return numbers;
}

// The softmax of the numbers, divided by the temperature.
std::vector<double> softmax(const std::vector<double>& numbers, double temperature) {
  const double largest = *std::max_element(numbers.begin(), numbers.end());
  std::vector<double> weights;
  double total = 0;
  for (const double number : numbers) {
    weights.push_back(std::exp((number - largest) / temperature));
    total += weights.back();
  }
  for (double& weight : weights) weight /= total;
  return weights;
}

LabelTrie make_trie(const std::vector<std::vector<TokenId>>& labels, size_t question) {
  try {
    return LabelTrie(labels);
  } catch (const Error& error) {
    const std::string name = fmt::format("questions[{}]", question);
    throw RequestError(name, reason_of(error.code()), fmt::format("{}: {}", name, error.what()),
                       error.code());
  }
}

}  // namespace

void check_questions(std::span<const DecisionQuestion> questions) {
  check_count("questions", questions.size(), 1, kMaxQuestions);
  for (size_t i = 0; i < questions.size(); ++i) {
    check_question(questions[i], fmt::format("questions[{}]", i));
  }
}

DecideJob::DecideJob(const TextModel& model, const std::string& input,
                     std::span<const DecisionQuestion> questions, const DecideOptions& options)
    : model_(model),
      options_(options),
      adapter_(find_adapter(model, options.lora)),
      scope_(prefix_scope(model, options.cache_salt)) {
  if (!kTemperatures.contains(options.temperature)) {
    throw invalid_field("temperature", fmt::format("found {}, expected {}", options.temperature,
                                                   range_words("a number", kTemperatures)));
  }
  check_questions(questions);
  for (const DecisionQuestion& question : questions) kinds_.push_back(question.kind);
  ask(input, options.input_name, questions);
  if (options.content_free_input) {
    ask(*options.content_free_input, "content_free_input", questions);
  }
  num_open_ = places_.size();
}

void DecideJob::ask(const std::string& input, const std::string& name,
                    std::span<const DecisionQuestion> questions) {
  const DecisionPrompt prompt(model_, input, name);
  inputs_.push_back({.name = name, .tokens = prompt.shared()});
  prompt_tokens_ += std::ssize(prompt.shared());
  hold_indices_.push_back(places_.size());
  for (size_t i = 0; i < questions.size(); ++i) {
    asked_.push_back({.input = inputs_.size() - 1,
                      .branch = prompt.branch(questions[i]),
                      .trie = make_trie(prompt.labels(questions[i]), i),
                      .rows = {}});
    Asked& asked = asked_.back();
    prompt_tokens_ += std::ssize(asked.branch);
    asked.rows.resize(asked.trie.nodes().size());
    for (size_t node = 0; node < asked.rows.size(); ++node) {
      places_.push_back({.asked = asked_.size() - 1, .node = node});
    }
    check_longest(asked_.size() - 1);
  }
}

// The others of the question are shorter and alike.
void DecideJob::check_longest(size_t asked) const {
  const auto nodes = asked_[asked].trie.nodes();
  const auto longest = std::max_element(nodes.begin(), nodes.end(),
                                        [](const LabelTrie::Node& a, const LabelTrie::Node& b) {
                                          return a.path.size() < b.path.size();
                                        });
  GenerateRequest request =
      request_at({.asked = asked, .node = static_cast<size_t>(longest - nodes.begin())});
  model_.engine.check(request);
}

GenerateRequest DecideJob::request(size_t index) const {
  const RowPlace place = places_[index];
  GenerateRequest request = request_at(place);
  const Asked& asked = asked_[place.asked];
  // The nodes of a question follow each other: its blocks are found by all of them.
  if (place.node == 0 && asked.rows.size() > 1) {
    request.prefix.write = PrefixUse::Write::keep;
    request.prefix.shared_lengths.push_back(std::ssize(request.prompt));
  }
  if (index == hold_indices_[asked.input]) {
    request.prefix.write = PrefixUse::Write::keep;
    request.prefix.hold = true;
    request.prefix.shared_lengths.push_back(std::ssize(inputs_[asked.input].tokens));
  }
  return request;
}

// Draws the likeliest token, to know it, and reports the columns beside it.
GenerateRequest DecideJob::request_at(RowPlace place) const {
  const Asked& asked = asked_[place.asked];
  const Input& input = inputs_[asked.input];
  const LabelTrie::Node& node = asked.trie.nodes()[place.node];
  GenerateRequest request{.prompt = {},
                          .prompt_name = input.name,
                          .max_tokens = 1,
                          .ignore_eos = true,
                          .want_logprobs = true,
                          .speculation = false,
                          .adapter = adapter_,
                          .priority = options_.priority,
                          .cancelled = options_.cancelled};
  request.prompt.reserve(input.tokens.size() + asked.branch.size() + node.path.size());
  for (const std::vector<TokenId>* part : {&input.tokens, &asked.branch, &node.path}) {
    request.prompt.insert(request.prompt.end(), part->begin(), part->end());
  }
  request.sampling.temperature = 0;
  request.sampling.logprob_token_ids = node.next;
  request.prefix = {.scope = scope_, .read = true, .write = PrefixUse::Write::none};
  return request;
}

void DecideJob::add(size_t request_index, TokenEvent& event) {
  if (event.token) {
    const RowPlace place = places_[request_index];
    LabelRow& row = asked_[place.asked].rows[place.node];
    row.likeliest = event.token->id;
    for (const TokenLogprob& one : event.top_logprobs) row.logprobs.push_back(one.logprob);
  }
  if (!event.ending) return;
  --num_open_;
  if (request_index == 0) cached_tokens_ = event.ending->stats.cached_tokens;
  if (error_) return;
  if (event.ending->error) {
    error_ = event.ending->error;
  } else if (event.ending->finish.reason == FinishReason::cancelled) {
    error_ = ErrorInfo{.code = ErrorCode::cancelled, .message = "cancelled by the caller"};
  }
}

DecisionAnswer DecideJob::answer(size_t question) const {
  const Asked& asked = asked_[question];
  DecisionAnswer answer;
  answer.logprobs = asked.trie.logprobs(asked.rows);
  answer.argmax_is_label = asked.trie.likeliest_is_label(asked.rows);
  std::vector<double> evidence = finite(answer.logprobs);
  double mass = 0;
  for (const double logprob : evidence) mass += std::exp(logprob);
  answer.label_mass = static_cast<float>(std::min(mass, 1.0));
  if (options_.content_free_input) {
    const Asked& prior = asked_[kinds_.size() + question];
    const std::vector<double> of_nothing = finite(prior.trie.logprobs(prior.rows));
    for (size_t i = 0; i < evidence.size(); ++i) evidence[i] -= of_nothing[i];
  }
  const std::vector<double> shares = softmax(evidence, options_.temperature);
  answer.probabilities.assign(shares.begin(), shares.end());
  const auto largest = std::max_element(shares.begin(), shares.end());
  answer.best = static_cast<size_t>(largest - shares.begin());
  const auto count = static_cast<double>(shares.size());
  answer.confidence = static_cast<float>((count * *largest - 1) / (count - 1));
  if (kinds_[question] == QuestionKind::score) {
    double expected = 0;
    for (size_t i = 0; i < shares.size(); ++i) expected += static_cast<double>(i) * shares[i];
    answer.score = static_cast<float>(expected);
  }
  return answer;
}

Decisions DecideJob::result() const {
  Decisions decisions;
  for (size_t i = 0; i < kinds_.size(); ++i) decisions.answers.push_back(answer(i));
  decisions.usage.prompt_tokens = prompt_tokens_;
  decisions.usage.cached_tokens = cached_tokens_;
  return decisions;
}

}  // namespace paceline
