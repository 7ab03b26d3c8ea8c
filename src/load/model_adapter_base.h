// What an adapter must fit: the projections of a model, from its config alone.
#pragma once

#include <string_view>

#include "adapters/adapter_base.h"
#include "load/model_source.h"
#include "models/decoder_config.h"

namespace paceline {

// All projections of the layers, and the head. `layers` is what the checkpoint has in place of
// "layers." ("model.layers.", "transformer.h."); from it follow the names in adapters' files.
AdapterBase adapter_base_of(const DecoderConfig& config, std::string_view layers);

// Of a model whose weights aren't loaded. Throws what read_model_config() throws.
AdapterBase read_adapter_base(const ModelSource& source);

}  // namespace paceline
