// Says that a device's kernels can't take a model's shapes before its weights are read.
#pragma once

#include <string>

#include "kernels/backend.h"
#include "models/decoder_config.h"

namespace paceline {

// `where` is the file of the config. Throws Error unsupported that names the field.
void check_device_takes(const DecoderConfig& config, const BackendLimits& limits,
                        const std::string& where);

}  // namespace paceline
