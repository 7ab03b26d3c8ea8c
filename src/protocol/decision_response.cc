#include "base/json_writer.h"
#include "protocol/decision_request.h"

namespace paceline {
namespace {

// Not in either API: how much of the model's answer the probabilities stand for.
void write_evidence(JsonWriter& writer, const DecisionAnswer& answer) {
  writer.member("label_mass", answer.label_mass);
  writer.member("argmax_is_label", answer.argmax_is_label);
}

void write_shares(JsonWriter& writer, const DecisionQuestion& question,
                  const DecisionAnswer& answer) {
  writer.key("probabilities").begin_array();
  for (size_t i = 0; i < question.options.size(); ++i) {
    writer.begin_object();
    writer.member(question.kind == QuestionKind::score ? "label" : "value",
                  question.options[i].value);
    if (question.kind == QuestionKind::score) writer.member("value", i);
    writer.member("probability", answer.probabilities[i]).end_object();
  }
  writer.end_array();
}

void write_answer(JsonWriter& writer, const DecisionQuestion& question,
                  const std::optional<std::string>& name, const DecisionAnswer& answer) {
  constexpr std::string_view kTypes[] = {"predicate", "choice", "score"};
  writer.begin_object()
      .member("type", kTypes[static_cast<size_t>(question.kind)])
      .member("name", name);
  if (question.kind == QuestionKind::predicate) {
    writer.member("probability", answer.probabilities[0]);
  } else {
    if (question.kind == QuestionKind::choice) {
      writer.member("choice", question.options[answer.best].value);
    } else {
      writer.member("score", answer.score);
    }
    writer.member("confidence", answer.confidence);
    write_shares(writer, question, answer);
  }
  write_evidence(writer, answer);
  writer.end_object();
}

// TypeSafe's names of options: a choice's own, or a level's number.
std::string option_name(const DecisionQuestion& question, size_t index) {
  if (question.kind == QuestionKind::score) return std::to_string(index);
  return std::get<std::string>(question.options[index].value);
}

void write_system_one_answer(JsonWriter& writer, const DecisionQuestion& question,
                             const DecisionAnswer& answer) {
  writer.begin_object();
  if (question.kind == QuestionKind::predicate) {
    writer.member("type", "noul").member("noul", answer.probabilities[0]);
  } else {
    const bool is_score = question.kind == QuestionKind::score;
    if (is_score) {
      writer.member("type", "score").member("score", answer.score);
      writer.key("legend").begin_object();
      for (size_t i = 0; i < question.options.size(); ++i) {
        writer.member(option_name(question, i), question.options[i].value);
      }
      writer.end_object();
    } else {
      writer.member("type", "choice").member("choice", option_name(question, answer.best));
    }
    writer.member("confidence", answer.confidence).key("probabilities").begin_object();
    for (size_t i = 0; i < question.options.size(); ++i) {
      writer.member(option_name(question, i), answer.probabilities[i]);
    }
    writer.end_object();
  }
  write_evidence(writer, answer);
  writer.end_object();
}

}  // namespace

std::string decision_response_json(const DecisionRequest& request, const ItemAnswer& answer) {
  const Decisions& decisions = answer.decisions;
  return object_json([&](JsonWriter& writer) {
    writer.key("answers").begin_array();
    for (size_t i = 0; i < request.questions.size(); ++i) {
      write_answer(writer, request.questions[i], request.names[i], decisions.answers[i]);
    }
    writer.end_array().member("model", answer.head.model);
    const Usage& usage = decisions.usage;
    write_input_output_usage(writer,
                             {.prompt_tokens = usage.prompt_tokens,
                              .completion_tokens = usage.completion_tokens,
                              .cached_tokens = usage.cached_tokens},
                             usage.prompt_tokens - usage.cached_tokens);
  });
}

std::string system_one_response_json(const DecisionRequest& request, const ItemAnswer& answer) {
  const Decisions& decisions = answer.decisions;
  return object_json([&](JsonWriter& writer) {
    writer.member("model", answer.head.model).key("answers").begin_object();
    for (size_t i = 0; i < request.questions.size(); ++i) {
      writer.key(*request.names[i]);
      write_system_one_answer(writer, request.questions[i], decisions.answers[i]);
    }
    writer.end_object().key("usage").begin_object();
    writer.member("input_tokens", decisions.usage.prompt_tokens);
    writer.member("output_tokens", decisions.usage.completion_tokens).end_object();
  });
}

}  // namespace paceline
