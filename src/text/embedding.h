// Embeddings: the engine's request for one, and the vector made of its result.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/request.h"
#include "paceline/options.h"
#include "text/text_model.h"

namespace paceline {

// Throws Error unsupported when the model makes no embeddings, invalid for dimensions or a named
// prompt that it doesn't have, and what encode_prompt throws.
GenerateRequest make_embed_request(const TextModel& model, const Prompt& prompt,
                                   const EmbedOptions& options);

// Cuts the engine's vector to options.dimensions and normalises it if the model does.
std::vector<float> finish_embedding(const TextModel& model, std::vector<float> pooled,
                                    const EmbedOptions& options);

}  // namespace paceline
