// ClassificationAnswer is what POST /v1/classify answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/answer.h"

namespace paceline {

constexpr std::string_view kClassificationIdPrefix = "classify-";

struct ClassifiedInput {
  std::optional<NamedToken> token;   // the one drawn
  std::optional<std::string> label;  // the best one
  std::vector<float> scores;         // of the labels in their order, sum 1
  std::optional<std::vector<float>> logits;
};

struct ClassificationAnswer {
  AnswerHead head;
  std::vector<ClassifiedInput> inputs;
  AnswerUsage usage;
};

// {"id", "object": "list", "created", "model", "data": [{"object": "classification", "index",
// "token_id", "token", "label", "scores", "logits"}], "usage"}; what an input hasn't got is null,
// logits are there when asked for.
std::string classification_answer_json(const ClassificationAnswer& answer);

}  // namespace paceline
