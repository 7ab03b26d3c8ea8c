// `model.safetensors.index.json`: maps tensors to files of the directory.
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
// or field when it isn't such an object, has a duplicate key, no tensor, or a path that isn't a
// plain file name.
std::vector<ShardedTensor> parse_shard_index(std::span<const std::byte> json,
                                             std::string_view where);

}  // namespace paceline
