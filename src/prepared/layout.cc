#include "prepared/layout.h"

#include <fmt/format.h>

#include "base/block_sum.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_writer.h"

namespace paceline {
namespace {

void write_part(const Part& part, JsonWriter& writer) {
  writer.begin_object().member("name", part.name);
  writer.member("n", part.format.n);
  if (part.format.kind == PartKind::matrix) {
    writer.member("k", part.format.k).member("dtype", dtype_name(part.format.dtype));
  }
  if (const auto& grouping = part.format.grouping) {
    writer.member("bits", grouping->bits).member("group_size", grouping->group_size);
    if (grouping->zero_point) writer.member("zero_point", *grouping->zero_point);
    if (grouping->has_multiples()) {
      writer.member("groups_per_factor", grouping->groups_per_factor);
    }
  }
  writer.end_object();
}

// The members of one object of the table.
class Members {
 public:
  Members(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    json.as_object(where_);
  }

  bool has(std::string_view key) const { return json_.find(key) != nullptr; }
  const Json& operator[](std::string_view key) const {
    const Json* const found = json_.find(key);
    if (found == nullptr) fail(fmt::format("{} is missing", key));
    return *found;
  }
  int64_t integer(std::string_view key) const { return (*this)[key].as_int(path(key)); }
  int small_number(std::string_view key) const {
    const int64_t value = integer(key);
    if (value < 0 || value > 255) fail(fmt::format("{} is {}, expected 0 to 255", key, value));
    return static_cast<int>(value);
  }
  const std::string& text(std::string_view key) const { return (*this)[key].as_string(path(key)); }
  std::string path(std::string_view key) const { return fmt::format("{}.{}", where_, key); }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::corrupt, fmt::format("{}: {}", where_, what));
  }

 private:
  const Json& json_;
  std::string where_;
};

Grouping read_grouping(const Members& members) {
  Grouping grouping;
  grouping.bits = members.small_number("bits");
  grouping.group_size = members.integer("group_size");
  if (members.has("zero_point")) {
    grouping.zero_point = members.small_number("zero_point");
  }
  if (members.has("groups_per_factor")) {
    grouping.groups_per_factor = members.small_number("groups_per_factor");
  }
  return grouping;
}

Part read_part(const Json& json, std::string where) {
  const Members members(json, std::move(where));
  Part part{.name = members.text("name"), .format = {.n = members.integer("n")}, .bytes = {}};
  if (members.has("k")) {
    const auto dtype = parse_dtype(members.text("dtype"));
    if (!dtype) members.fail(fmt::format("dtype {} is unknown", members.text("dtype")));
    part.format.kind = PartKind::matrix;
    part.format.dtype = *dtype;
    part.format.k = members.integer("k");
  }
  if (members.has("bits")) part.format.grouping = read_grouping(members);
  if (!part_bytes(part.format)) members.fail("describes a weight that can't be");
  return part;
}

}  // namespace

uint64_t sum_of_head(const PreparedHead& head) {
  const auto bytes = std::as_bytes(std::span(&head, 1));
  return block_sum(bytes.first(offsetof(PreparedHead, head_sum)), kHeadSeed);
}

std::string write_table(const PreparedTable& table) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().member("key", table.key);
  writer.member("digest", fmt::format("{:016x}{:016x}", table.digest.high, table.digest.low));
  writer.member("num_parameters", table.weights.num_parameters);
  writer.member("is_quantised", table.weights.is_quantised);
  writer.key("parts").begin_array();
  for (const Part& part : table.weights.parts) write_part(part, writer);
  writer.end_array().end_object();
  return json;
}

PreparedTable read_table(std::string_view json, std::string_view where) {
  const Json parsed = parse_json(json, where);
  const Members members(parsed, std::string(where));
  PreparedTable table{.key = members.text("key"), .digest = {}, .weights = {}};
  const std::string& digest = members.text("digest");
  constexpr size_t kHexDigits = 32;
  if (digest.size() != kHexDigits ||
      digest.find_first_not_of("0123456789abcdef") != std::string::npos) {
    members.fail(fmt::format("the digest is \"{}\", expected 32 hex digits", digest));
  }
  table.digest = {.low = std::stoull(digest.substr(kHexDigits / 2), nullptr, 16),
                  .high = std::stoull(digest.substr(0, kHexDigits / 2), nullptr, 16)};
  table.weights.num_parameters = members.integer("num_parameters");
  table.weights.is_quantised = members["is_quantised"].as_bool(members.path("is_quantised"));
  const Json::Array& parts = members["parts"].as_array(members.path("parts"));
  for (size_t i = 0; i < parts.size(); ++i) {
    table.weights.parts.push_back(read_part(parts[i], fmt::format("{}.parts[{}]", where, i)));
  }
  return table;
}

}  // namespace paceline
