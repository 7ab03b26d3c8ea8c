// The tensors of an input {"tensors": {NAME: {"dtype": "U32", "shape": [2, 4]}, ...}}.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "weights/checkpoint.h"

namespace paceline::fuzz {

inline std::optional<DType> dtype_of_name(std::string_view name) {
  if (name == "U32") return DType::u32;
  if (name == "U8") return DType::u8;
  const auto dtype = parse_dtype(name == "BF16" ? "bf16" : name == "F16" ? "f16" : name);
  return dtype && is_float(*dtype) ? dtype : std::nullopt;
}

// Nothing when a file of a sensible size couldn't hold them; the file's parser checks the rest.
inline std::optional<std::vector<CheckpointEntry>> read_entries(const Json& tensors) {
  constexpr int64_t kMostElements = 1 << 16;
  std::vector<CheckpointEntry> entries;
  for (const auto& [name, tensor] : tensors.as_object("tensors")) {
    const Json* const dtype = tensor.find("dtype");
    const Json* const shape = tensor.find("shape");
    if (dtype == nullptr || !dtype->is_string() || shape == nullptr || !shape->is_array())
      return {};
    const auto known = dtype_of_name(dtype->as_string("dtype"));
    std::vector<int64_t> extents;
    int64_t count = 1;
    for (const Json& extent : shape->as_array("shape")) {
      if (!extent.is_integer() || extent.is_negative()) return {};
      if (extent.as_uint("shape") > static_cast<uint64_t>(kMostElements)) return {};
      extents.push_back(extent.as_int("shape"));
      count *= extents.back();
      if (count > kMostElements) return {};
    }
    if (!known || extents.size() > static_cast<size_t>(kMaxRank)) return {};
    entries.push_back({name, *known, Extents(extents)});
  }
  return entries;
}

}  // namespace paceline::fuzz
