// Converts requests of the API to options of the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>

#include "paceline/options.h"
#include "protocol/chat_request.h"
#include "protocol/classification_request.h"
#include "protocol/completion_request.h"
#include "protocol/embedding_request.h"

namespace paceline {

// In all of them `default_seed` is the seed of a request without one, and messages name the prompt
// as the request does. The options don't include n.

// For prompt.prompts[index].
GenerateOptions completion_options(const CompletionRequest& request, size_t index,
                                   std::optional<uint64_t> default_seed,
                                   const std::stop_token& cancelled);

GenerateOptions chat_options(const ChatRequest& request, std::optional<uint64_t> default_seed,
                             const std::stop_token& cancelled);

// For input.prompts[index].
ClassifyOptions classification_options(const ClassificationRequest& request, size_t index,
                                       std::optional<uint64_t> default_seed,
                                       const std::stop_token& cancelled);

// For input.prompts[index].
EmbedOptions embedding_options(const EmbeddingRequest& request, size_t index,
                               const std::stop_token& cancelled);

}  // namespace paceline
