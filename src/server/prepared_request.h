// PreparedRequest is an API request read, checked and tokenised: all that is done before the
// engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "protocol/api_request.h"
#include "text/classify_job.h"
#include "text/completion_builder.h"
#include "text/text_model.h"

namespace paceline {

// One prompt.
struct PreparedPart {
  std::vector<GenerateRequest> requests;      // one, or those of a classification
  std::vector<CompletionBuilder> choices;     // n of them, or
  std::optional<ClassifyJob> classification;  // this
};

struct PreparedRequest {
  ApiRequest request;
  std::vector<PreparedPart> parts;
};

enum class ApiEndpoint : uint8_t { completions, chat, classify };

// The body as a request of that kind. Throws RequestError, for a model that isn't among `names`
// too.
ApiRequest parse_api_request(ApiEndpoint endpoint, std::string_view body,
                             const std::vector<std::string>& model_names);

// Any thread. Throws Error naming the field at fault for what can never run.
PreparedRequest prepare_request(const TextModel& model, ApiRequest request);

}  // namespace paceline
