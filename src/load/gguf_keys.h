// The keys of a GGUF file that describe a model's computation: what gguf_config() reads.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "models/decoder_config.h"
#include "models/gguf_architecture.h"
#include "weights/gguf_file_writer.h"

namespace paceline {

// Tables of rotary frequencies, which are tensors of F32 in the file: "rope_freqs.weight".
using GgufTables = std::map<std::string, std::vector<float>>;

// The architecture of files that hold the model. Throws Error unsupported "WHERE: ..." when there
// is none, or it isn't written.
const GgufArchitecture& architecture_to_write(const DecoderConfig& config, std::string_view where);

// Adds general.architecture and the architecture's keys. `json` is the config.json, from which keys
// come that are its fields. Throws Error unsupported "WHERE: ..." for a rope that files can't have.
GgufTables add_config_keys(const DecoderConfig& config, const Json& json,
                           const GgufArchitecture& architecture, std::string_view where,
                           GgufHeader& header);

// Throws Error unsupported "WHERE: ..." naming what differs when `read`, the config of what was
// written, isn't the computation of `config`.
void check_same_computation(const DecoderConfig& config, const DecoderConfig& read,
                            const GgufArchitecture& architecture, std::string_view where);

}  // namespace paceline
