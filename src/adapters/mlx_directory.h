// Adapters in the format of mlx-lm: adapter_config.json and adapters.safetensors.
#pragma once

#include <filesystem>
#include <string_view>

#include "adapters/adapter.h"
#include "adapters/adapter_base.h"
#include "adapters/pair_collector.h"

namespace paceline {

inline constexpr std::string_view kMlxWeightsFile = "adapters.safetensors";

// Read as load_adapters() in mlx_lm/tuner/utils.py (0.32) does: lora_parameters.scale is the factor
// itself, matrices are stored transposed, num_layers counts from the last layer, and keys are names
// inside a layer or whole names. Throws Error naming the file and the field or tensor: unsupported
// for another fine_tune_type than "lora"; corrupt for a pair outside keys and num_layers or of
// another rank; and as read_peft_adapter() does.
Adapter read_mlx_adapter(const std::filesystem::path& directory, const AdapterBase& base,
                         const AdapterLimits& limits, Memory& memory);

// Writes a new directory, which appears when complete. Throws Error unsupported when the pairs
// differ in rank or scale, which the format has once for all; and what NewDirectory and NewFile
// throw.
void write_mlx_adapter(const Adapter& adapter, const AdapterBase& base,
                       const std::filesystem::path& directory);

}  // namespace paceline
