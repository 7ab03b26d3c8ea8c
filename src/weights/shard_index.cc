#include "weights/shard_index.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_document.h"

namespace paceline {
namespace {

bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name.find("..") == name.npos &&
         name.find_first_of(std::string_view("/\0", 2)) == name.npos;
}

}  // namespace

std::vector<ShardedTensor> parse_shard_index(std::span<const std::byte> json,
                                             std::string_view where) {
  if (json.size() > kMaxShardIndexBytes) {
    throw Error(ErrorCode::corrupt, fmt::format("{}: {} bytes, at most {} are read", where,
                                                json.size(), kMaxShardIndexBytes));
  }
  std::string text(reinterpret_cast<const char*>(json.data()), json.size());
  const JsonDocument document(std::move(text), where, ErrorCode::corrupt, HugeIntegers::refused);
  const DocumentCursor map = document.root().at("weight_map");
  std::vector<ShardedTensor> tensors;
  for (const auto& [name, value] : map.members()) {
    if (!value.is_string() || !is_plain_file_name(value.string())) {
      map.entry(name, value).mismatch("the name of a file beside the index");
    }
    tensors.push_back({std::string(name), std::string(value.string())});
  }
  if (tensors.empty()) map.fail("names no tensor");
  std::ranges::sort(tensors, {}, &ShardedTensor::name);
  return tensors;
}

}  // namespace paceline
