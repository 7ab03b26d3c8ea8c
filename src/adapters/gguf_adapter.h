// Adapters in GGUF files, as llama.cpp's convert_lora_to_gguf.py writes them.
#pragma once

#include <filesystem>

#include "adapters/adapter.h"
#include "adapters/adapter_base.h"
#include "adapters/pair_collector.h"

namespace paceline {

// Read as llama_adapter_lora_init() in llama.cpp's src/llama-adapter.cpp does: general.type is
// "adapter", adapter.type "lora", and the scale adapter.lora.alpha / rank, or 1 where alpha is 0 or
// absent. Rows of B that the format interleaves are put in order again; matrices of Q8_0
// become float32. Throws Error naming the file and the key or tensor: unsupported for another kind
// of file and for tensors other than pairs; what GgufFile and PairCollector throw; numerical for
// NaN and infinities.
Adapter read_gguf_adapter(const std::filesystem::path& path, const AdapterBase& base,
                          const AdapterLimits& limits, Memory& memory);

}  // namespace paceline
