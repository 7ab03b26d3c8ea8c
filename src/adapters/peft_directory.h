// Adapters in the format of Hugging Face's PEFT: adapter_config.json and adapter_model.safetensors.
#pragma once

#include <filesystem>
#include <string_view>

#include "adapters/adapter.h"
#include "adapters/adapter_base.h"
#include "adapters/pair_collector.h"

namespace paceline {

inline constexpr std::string_view kPeftWeightsFile = "adapter_model.safetensors";

// Throws Error naming the file and the field or tensor: what PeftConfig, parse_safetensors_header()
// and PairCollector throw; corrupt for a pair that target_modules doesn't choose or whose rank
// isn't that of the config; numerical for NaN and infinities; unsupported for other tensors than
// pairs.
Adapter read_peft_adapter(const std::filesystem::path& directory, const AdapterBase& base,
                          const AdapterLimits& limits, Memory& memory);

// Writes the two files to a directory that has neither, the config last. Throws what NewFile
// throws.
void write_peft_files(const Adapter& adapter, const AdapterBase& base,
                      const std::filesystem::path& directory);

// Writes a new directory, which appears when complete. target_modules lists each module's whole
// name. Throws what NewDirectory and NewFile throw.
void write_peft_adapter(const Adapter& adapter, const AdapterBase& base,
                        const std::filesystem::path& directory);

}  // namespace paceline
