#include "weights/shard_index.h"

#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "weights/dom_object.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name.find("..") == name.npos &&
         name.find_first_of(std::string_view("/\0", 2)) == name.npos;
}

}  // namespace

std::vector<ShardedTensor> parse_shard_index(std::span<const std::byte> json,
                                             std::string_view where) {
  auto corrupt = [&](const std::string& what) {
    throw Error(ErrorCode::corrupt, fmt::format("{}: {}", where, what));
  };
  if (json.size() > kMaxShardIndexBytes) {
    corrupt(fmt::format("{} bytes, at most {} are read", json.size(), kMaxShardIndexBytes));
  }
  simdjson::dom::parser parser;
  std::optional<simdjson::dom::element> map;
  for (const DomMember& member : unique_members(parse_dom_object(parser, json, where), where)) {
    if (member.key == "weight_map") map = member.value;
  }
  if (!map) corrupt("the field \"weight_map\" is missing");
  simdjson::dom::object entries;
  if (map->get(entries) != simdjson::SUCCESS) {
    corrupt(fmt::format("weight_map: expected an object, found {}", dom_kind(*map)));
  }
  std::vector<ShardedTensor> tensors;
  for (const DomMember& member : unique_members(entries, fmt::format("{}: weight_map", where))) {
    std::string_view file;
    if (member.value.get(file) != simdjson::SUCCESS) {
      corrupt(fmt::format("weight_map: {}: expected a file name, found {}", quoted_name(member.key),
                          dom_kind(member.value)));
    }
    if (!is_plain_file_name(file)) {
      corrupt(fmt::format("weight_map: {}: {} isn't the name of a file beside the index",
                          quoted_name(member.key), quoted_name(file)));
    }
    tensors.push_back({std::string(member.key), std::string(file)});
  }
  if (tensors.empty()) corrupt("weight_map: names no tensor");
  return tensors;
}

}  // namespace paceline
