// ClassificationResponse is the answer of POST /v1/classify.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/response.h"

namespace paceline {

constexpr std::string_view kClassificationIdPrefix = "classify-";

struct ClassifiedInput {
  std::optional<NamedToken> token;   // the one drawn
  std::optional<std::string> label;  // the best one
  std::vector<float> scores;         // of the labels in their order, sum 1
  std::optional<std::vector<float>> logits;
  std::vector<std::string> labels;  // the model's own, where its head classifies
};

struct ClassificationResponse {
  ResponseHead head;
  std::vector<ClassifiedInput> inputs;
  ResponseUsage usage;
};

// {"id", "object": "list", "created", "model", "data": [{"object": "classification", "index",
// "token_id", "token", "label", "scores", "labels", "logits"}], "usage"}; missing values are null,
// "labels" are there where the model has its own, "logits" only on request.
std::string classification_response_json(const ClassificationResponse& answer);

}  // namespace paceline
