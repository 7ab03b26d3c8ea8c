// What the readers of all formats share.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "adapters/pair_collector.h"
#include "base/mapped_file.h"
#include "weights/safetensors.h"

namespace paceline {

inline constexpr std::string_view kAdapterConfigFile = "adapter_config.json";

// Throws Error exhausted when the adapter's file has more than `limits.max_bytes`.
void check_adapter_bytes(const std::filesystem::path& path, uint64_t size_bytes,
                         const AdapterLimits& limits);

// Whether a module belongs to a part of a multimodal base that a text model doesn't compute, such
// as the vision tower. Its pairs are left out: they change nothing of the text.
bool is_unused_module(std::string_view file_module);

// `rank` from a pair's matrices and from the config must be equal: Error corrupt.
void check_config_rank(std::string_view where, const LoraParts& parts, int64_t config_rank,
                       std::string_view config_where);

// Sets alpha and scale. Throws Error invalid when the scale isn't finite in float32.
void set_scale(std::string_view where, LoraPair& pair, double alpha, double scale);

StoredLoraMatrix stored_matrix(const SafetensorsTensor& tensor, bool is_transposed);

}  // namespace paceline
