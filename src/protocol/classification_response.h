// ClassificationResponse is the answer of POST /v1/classify.
#pragma once

#include <cstdint>
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
};

struct ClassificationResponse {
  ResponseHead head;
  std::vector<ClassifiedInput> inputs;
  ResponseUsage usage;
};

// {"id", "object": "list", "created", "model", "data": [{"object": "classification", "index",
// "token_id", "token", "label", "scores", "logits"}], "usage"}; missing values are null, "logits"
// is there only on request.
std::string classification_response_json(const ClassificationResponse& answer);

}  // namespace paceline
