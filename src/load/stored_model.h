// What a model's files say of it before its weights are read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "load/model_source.h"
#include "models/decoder_config.h"
#include "paceline/options.h"
#include "weights/checkpoint.h"

namespace paceline {

// The decoder's config from the files, without loading weights.
DecoderConfig read_model_config(const ModelSource& source, LoadFormat format);

// The tensors of the files as a model reads them: packed matrices with their plain shapes.
std::vector<CheckpointEntry> read_model_tensors(const ModelSource& source);

// QuantisedCheckpoint::description() of the model's files, as the CPU reads them without options;
// empty where no tool has quantised them.
std::string describe_quantised_files(const ModelSource& source);
// QuantisedCheckpoint::added_bytes() of them, where floats of 8 bits are expanded: on a GPU.
uint64_t bytes_added_by_reading(const ModelSource& source);

}  // namespace paceline
