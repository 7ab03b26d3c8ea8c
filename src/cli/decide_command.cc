#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "cli/command.h"
#include "cli/items.h"
#include "cli/line_fields.h"
#include "cli/model_opening.h"
#include "cli/text_file.h"
#include "cli/usage_error.h"
#include "paceline/error.h"
#include "protocol/decision_request.h"

namespace paceline {
namespace {

constexpr std::string_view kDecideFields[] = {"input", "questions", "temperature",
                                              "content_free_input"};

// The options as members of a request.
Json::Object asked_by_options(const Settings& settings) {
  Json::Object members;
  Json::Array questions;
  if (!settings.questions_file.empty()) {
    const Json file = parse_json(read_whole_text(settings.questions_file), settings.questions_file);
    questions = file.as_array(settings.questions_file);
  }
  for (const std::string& text : settings.predicates) {
    if (text.empty()) throw UsageError("--predicate: empty, expected what is asked");
    questions.push_back(
        Json(Json::Object{{"type", Json(std::string("predicate"))}, {"instructions", Json(text)}}));
  }
  if (!questions.empty()) members.emplace_back("questions", Json(std::move(questions)));
  if (settings.decide_temperature) {
    members.emplace_back("temperature", Json(*settings.decide_temperature));
  }
  if (settings.content_free_input) {
    members.emplace_back("content_free_input", Json(*settings.content_free_input));
  }
  return members;
}

// A line is a body of POST /v1/decisions; what it lacks the options say.
DecisionRequest read_decision(const Item& item, const Json::Object& by_options) {
  Json::Object members;
  if (const Json* line = item.line()) {
    check_line_keys(*line, {kDecideFields});
    members = *line->object();
  } else {
    members.emplace_back("input", Json(item.text()));
  }
  for (const auto& asked : by_options) {
    const bool is_there = std::any_of(members.begin(), members.end(), [&](const auto& member) {
      return member.first == asked.first;
    });
    if (!is_there) members.push_back(asked);
  }
  return parse_decision_request(Json(std::move(members)));
}

std::string decision_option_text(const DecisionQuestion& question, size_t index) {
  if (question.kind == QuestionKind::predicate) return index == 0 ? "yes" : "no";
  const ChoiceValue& value = question.options[index].value;
  if (const bool* const flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  return std::get<std::string>(value);
}

// Each question with its options' probabilities.
std::string decision_table(const DecisionRequest& request, const Decisions& decisions) {
  std::string table;
  for (size_t i = 0; i < request.questions.size(); ++i) {
    const DecisionQuestion& question = request.questions[i];
    const DecisionAnswer& answer = decisions.answers[i];
    table += question.instructions + "\n";
    if (question.kind == QuestionKind::score) {
      table += fmt::format("  {:.4f}  expected level of 0 to {}\n", answer.score,
                           question.options.size() - 1);
    }
    for (size_t k = 0; k < answer.probabilities.size(); ++k) {
      table +=
          fmt::format("  {:.4f}  {}\n", answer.probabilities[k], decision_option_text(question, k));
    }
  }
  return table;
}

}  // namespace

int run_decide(const Settings& settings, Session& session) {
  const Json::Object by_options = asked_by_options(settings);
  if (!settings.jsonl && (by_options.empty() || by_options.front().first != "questions")) {
    throw UsageError("no questions: give --predicate TEXT or --questions FILE");
  }
  ItemSource items(settings);
  constexpr size_t kUsualQuestions = 32;
  LLM llm = open_model(settings, session, usual_sequences(settings, kUsualQuestions));
  std::unordered_map<int64_t, DecisionRequest> requests;  // of items in flight
  const auto begin = [&](const Item& item, int64_t tag, RequestPool& pool) {
    DecisionRequest request = read_decision(item, by_options);
    request.common.lora = settings.generate.lora;
    DecideOptions options = decide_options(request);
    options.cancelled = session.stop_token();
    pool.decide(tag, request.input, request.questions, options);
    requests.emplace(tag, std::move(request));
  };
  const auto answer = [&](int64_t tag, const RequestPool::Done& done) -> PooledAnswer {
    const DecisionRequest request = std::move(requests.extract(tag).mapped());
    const auto& decisions = std::get<Decisions>(done.result);
    if (!settings.jsonl) return {decision_table(request, decisions), true};
    return {decision_response_json(
                request, {.head = {.model = llm.model_info().path}, .decisions = decisions}) +
            "\n"};
  };
  return for_each_item_pooled(items, settings, session, llm, {begin, answer});
}

}  // namespace paceline
