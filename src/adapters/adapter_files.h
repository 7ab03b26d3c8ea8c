// Reads an adapter of any format, which its files tell.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "adapters/adapter.h"
#include "adapters/adapter_base.h"
#include "adapters/pair_collector.h"

namespace paceline {

enum class AdapterFormat : uint8_t { peft, mlx, gguf };

// "PEFT", "mlx", "GGUF".
std::string_view adapter_format_name(AdapterFormat format);

// By the names of a directory's files; a file is GGUF. Throws Error not_found without an adapter's
// weights, invalid when the directory has those of two formats, unsupported for adapter_model.bin.
AdapterFormat find_adapter_format(const std::filesystem::path& path);

// Throws what find_adapter_format() and the format's reader throw. `memory` must outlive the
// result.
Adapter read_adapter(const std::filesystem::path& path, const AdapterBase& base, Memory& memory,
                     const AdapterLimits& limits = {});

}  // namespace paceline
