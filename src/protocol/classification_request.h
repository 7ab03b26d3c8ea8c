// ClassificationRequest is the body of POST /v1/classify, an extension of Paceline: it asks for one
// token, or one of several labels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "protocol/request_fields.h"
#include "protocol/response.h"

namespace paceline {

struct ClassificationRequest {
  CommonFields common;
  GenerateOptions options;

  PromptList input;
  std::vector<std::string> labels;  // encoded as written; none: a token is drawn
  bool with_token_id = false;       // with labels: draw a token too
  bool with_logits = false;         // of the whole vocabulary
};

// Throws RequestError naming the first field that is wrong, unknown or not supported.
ClassificationRequest parse_classification_request(const Json& body,
                                                   const RequestTerms& terms = {});

FieldList classification_request_fields();

constexpr std::string_view kClassificationIdPrefix = "classify-";

// {"id", "object": "list", "created", "model", "data": [{"object": "classification", "index",
// "token_id", "token", "label", "scores", "labels", "logits"}], "usage"}; missing values are null,
// "labels" are there where the model has its own, "logits" only on request.
std::string classification_response_json(const ClassificationRequest& request, ItemAnswer answer);

}  // namespace paceline
