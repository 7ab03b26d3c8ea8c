// DecisionRequest asks typed questions about one input: the body of OpenAI's POST /v1/decisions, or
// of TypeSafe's POST /v1/systemone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "paceline/decisions.h"
#include "protocol/request_fields.h"
#include "protocol/response.h"

namespace paceline {

struct DecisionRequest {
  CommonFields common;
  std::string input;                 // messages and calls as one text
  std::string input_name = "input";  // the field
  std::vector<DecisionQuestion> questions;
  std::vector<std::optional<std::string>> names;  // of the questions; system one's are keys
  float temperature = 1;
  std::optional<std::string> content_free_input;
};

// Each throws RequestError naming the first field that is wrong, unknown or not supported. Images
// are refused.
DecisionRequest parse_decision_request(const Json& body, const RequestTerms& terms = {});
DecisionRequest parse_system_one_request(const Json& body, const RequestTerms& terms = {});

FieldList decision_request_fields();
FieldList system_one_request_fields();

DecideOptions decide_options(const DecisionRequest& request);

constexpr std::string_view kDecisionIdPrefix = "decision-";

// {"answers": [...], "model", "usage"}, OpenAI's, each answer with label_mass and argmax_is_label.
std::string decision_response_json(const DecisionRequest& request, const ItemAnswer& answer);
// {"model", "answers": {NAME: ...}, "usage"}, TypeSafe's, likewise.
std::string system_one_response_json(const DecisionRequest& request, const ItemAnswer& answer);

}  // namespace paceline
