#include "text/decision_prompt.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/json_writer.h"
#include "base/request_error.h"
#include "text/chat_prompt.h"
#include "text/chat_turn.h"
#include "text/chat_turns.h"
#include "text/label_tokens.h"
#include "text/make_request.h"
#include "text/text_model.h"

namespace paceline {
namespace {

constexpr std::string_view kBeforeInput =
    "Read the input, then answer the question about it.\n\nInput:\n";
constexpr std::string_view kAfterInput = "\n\nQuestion:\n";
constexpr std::string_view kPlainTail = "\nAnswer:";
constexpr size_t kNumLetters = 26;

bool is_described(const DecisionQuestion& question) {
  return std::any_of(question.options.begin(), question.options.end(),
                     [](const QuestionOption& option) { return !option.description.empty(); });
}

std::string_view default_instructions(QuestionKind kind) {
  if (kind == QuestionKind::predicate) return "Is it yes or no?";
  return kind == QuestionKind::choice ? "Which of these fits best?" : "Which level fits best?";
}

std::string_view how_to_answer(const DecisionQuestion& question) {
  if (question.kind == QuestionKind::predicate) return "Answer Yes or No.";
  const bool is_letter =
      question.kind == QuestionKind::choice && question.options.size() <= kNumLetters;
  return is_letter ? "Answer with the letter." : "Answer with the number.";
}

// Texts beside booleans are quoted, so that "true" and true differ.
std::string value_text(const ChoiceValue& value, bool quotes) {
  if (const bool* const flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  const std::string& text = std::get<std::string>(value);
  return quotes ? json_quote(text) : text;
}

// "A: billing (about invoices)", or "Yes: what yes means".
std::string option_line(const DecisionQuestion& question, const QuestionOption& option,
                        const std::string& label) {
  if (question.kind == QuestionKind::predicate) {
    return option.description.empty() ? "" : fmt::format("{}: {}\n", label, option.description);
  }
  const bool quotes = std::any_of(
      question.options.begin(), question.options.end(),
      [](const QuestionOption& one) { return std::holds_alternative<bool>(one.value); });
  const std::string value = value_text(option.value, quotes);
  return option.description.empty()
             ? fmt::format("{}: {}\n", label, value)
             : fmt::format("{}: {} ({})\n", label, value, option.description);
}

// A word that isn't in the input.
std::string unused_word(const std::string& input) {
  std::string word = "PacelineQuestion";
  for (int n = 0; input.find(word) != std::string::npos; ++n) {
    word = fmt::format("PacelineQuestion{}", n);
  }
  return word;
}

// What makes a prompt end where the content of an answer begins.
std::string begin_content(const TextModel& model, const std::string& prompt) {
  if (model.turns == nullptr) return "";
  const TurnFormat& format = *model.turns->format();
  std::string text;
  if (format.reasoning && format.reasoning->is_opened_by(prompt)) {
    text += fmt::format("{}\n\n", format.reasoning->end);
  }
  return text + format.content.begin;
}

}  // namespace

std::vector<std::string> option_labels(const DecisionQuestion& question) {
  if (question.kind == QuestionKind::predicate) return {"Yes", "No"};
  const size_t count = question.options.size();
  std::vector<std::string> labels;
  for (size_t i = 0; i < count; ++i) {
    if (question.kind == QuestionKind::score) {
      labels.push_back(std::to_string(i));
    } else if (count <= kNumLetters) {
      labels.emplace_back(1, static_cast<char>('A' + i));
    } else {
      labels.push_back(fmt::format("{:0{}}", i + 1, std::to_string(count).size()));
    }
  }
  return labels;
}

std::string question_text(const DecisionQuestion& question) {
  std::string text = question.instructions;
  if (text.empty() && !(question.kind == QuestionKind::predicate && is_described(question))) {
    text = default_instructions(question.kind);
  }
  if (!text.empty()) text += "\n";
  const std::vector<std::string> labels = option_labels(question);
  for (size_t i = 0; i < question.options.size(); ++i) {
    text += option_line(question, question.options[i], labels[i]);
  }
  text += how_to_answer(question);
  return text;
}

DecisionPrompt::DecisionPrompt(const TextModel& model, const std::string& input,
                               const std::string& name)
    : model_(model) {
  if (model.tokenizer == nullptr) {
    throw RequestError("", ErrorReason::feature_disabled,
                       fmt::format("{}: has no tokenizer.json, which decisions need", model.name),
                       ErrorCode::not_found);
  }
  if (model.chat_template == nullptr || !set_chat(input, name)) set_plain_text(input, name);
}

// The template writes the message with a word where the question will be. False where the word
// isn't found again.
bool DecisionPrompt::set_chat(const std::string& input, const std::string& name) {
  const std::string word = unused_word(input);
  ChatInput chat{
      .messages = {{"user", fmt::format("{}{}{}{}", kBeforeInput, input, kAfterInput, word)}}};
  set_reasoning_effort(model_, "none", chat);
  RenderedChat rendered = render_within_context(model_, chat);
  const size_t at = rendered.text.rfind(word);
  if (at == std::string::npos || rendered.text.find(word) != at) return false;
  tail_ = rendered.text.substr(at + word.size()) + begin_content(model_, rendered.text);
  if (tail_.empty()) tail_ = kPlainTail;
  rendered.text.resize(at);
  std::erase_if(rendered.typed, [at](const TextSpan& span) { return span.end > at; });
  shared_ = encode_prompt(model_, rendered.text, name, {.plain = rendered.typed});
  return true;
}

void DecisionPrompt::set_plain_text(const std::string& input, const std::string& name) {
  const TextSpan typed{.begin = kBeforeInput.size(), .end = kBeforeInput.size() + input.size()};
  const bool is_text = model_.typed_specials == TypedSpecials::text && !input.empty();
  shared_ = encode_prompt(model_, fmt::format("{}{}{}", kBeforeInput, input, kAfterInput), name,
                          {.add_special = true, .plain = std::span(&typed, is_text ? 1 : 0)});
  tail_ = kPlainTail;
}

std::vector<TokenId> DecisionPrompt::branch(const DecisionQuestion& question) const {
  const std::string text = question_text(question);
  const bool is_text = model_.typed_specials == TypedSpecials::text;
  return tokens_after(*model_.tokenizer, "\n", text + tail_, is_text ? text.size() : 0);
}

std::vector<std::vector<TokenId>> DecisionPrompt::labels(const DecisionQuestion& question) const {
  std::vector<std::vector<TokenId>> labels;
  for (const std::string& label : option_labels(question)) {
    const auto [known, is_new] = known_labels_.try_emplace(label);
    if (is_new) known->second = label_tokens(*model_.tokenizer, tail_, label);
    labels.push_back(known->second);
  }
  return labels;
}

}  // namespace paceline
