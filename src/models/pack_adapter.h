// Packs a LoRA adapter for the products of a decoder.
#pragma once

#include "layers/adapter_weights.h"
#include "models/decoder_config.h"

namespace paceline {

class Adapter;
class Backend;

// Matrices are packed in the types they have, float16 as float32. The scale is multiplied into B
// before that is rounded to its type, as in training (train/trained_matrix.h). A pair whose B is
// zero then is left out. Throws Error unsupported for a module outside of the blocks' projections
// (lm_head, embed_tokens), invalid for one that the decoder lacks or of another size, and for two
// that change the same weights.
AdapterWeights pack_adapter(const Adapter& adapter, const DecoderConfig& config, Backend& backend);

}  // namespace paceline
