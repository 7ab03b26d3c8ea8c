// `model.safetensors.index.json`: which file of the directory holds which tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

constexpr uint64_t kMaxShardIndexBytes = 100'000'000;

struct ShardedTensor {
  std::string name;
  std::string file;  // a name inside the index's directory, never a path out of it
};

// The index's `weight_map`, sorted by tensor. Throws Error corrupt "WHERE: ..." naming the tensor
// or field when it is no such object, names a key twice, no tensor at all, or something that isn't
// a plain file name.
std::vector<ShardedTensor> parse_shard_index(std::span<const std::byte> json,
                                             std::string_view where);

}  // namespace paceline
