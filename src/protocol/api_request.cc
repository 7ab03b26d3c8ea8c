#include "protocol/api_request.h"

namespace paceline {

const CommonFields& common_fields_of(const ApiRequest& request) {
  return std::visit([](const auto& r) -> const CommonFields& { return r.common; }, request);
}

CommonFields& common_fields_of(ApiRequest& request) {
  return std::visit([](auto& r) -> CommonFields& { return r.common; }, request);
}

size_t num_parts(const ApiRequest& request) {
  if (const auto* completion = std::get_if<CompletionRequest>(&request)) {
    return completion->prompt.prompts.size();
  }
  if (const auto* embedding = std::get_if<EmbeddingRequest>(&request)) {
    return embedding->input.prompts.size();
  }
  const auto* classification = std::get_if<ClassificationRequest>(&request);
  return classification == nullptr ? 1 : classification->input.prompts.size();
}

}  // namespace paceline
