// What the configs of encoders have in common.
#pragma once

#include "models/family.h"

namespace paceline {

// Attention in both directions, layer norms, no head for tokens.
void set_encoder(DecoderConfig& encoder);
// The block of BERT: norms behind each sum, one of the embedding, none at the end.
void set_norms_behind(DecoderConfig& encoder);
// Throws Error unsupported for `is_decoder: true`.
void check_is_encoder(const HfConfig& config);

}  // namespace paceline
