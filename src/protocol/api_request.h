// ApiRequest is a request to any of the endpoints that compute.
#pragma once

#include <cstddef>
#include <variant>

#include "protocol/chat_request.h"
#include "protocol/classification_request.h"
#include "protocol/completion_request.h"
#include "protocol/embedding_request.h"

namespace paceline {

using ApiRequest =
    std::variant<CompletionRequest, ChatRequest, ClassificationRequest, EmbeddingRequest>;

const CommonFields& common_fields_of(const ApiRequest& request);
CommonFields& common_fields_of(ApiRequest& request);

// The number of prompts. Each becomes a request of the engine; a conversation is one prompt.
size_t num_parts(const ApiRequest& request);

}  // namespace paceline
