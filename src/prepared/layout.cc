#include "prepared/layout.h"

#include <fmt/format.h>

#include "base/block_sum.h"
#include "base/error.h"
#include "base/json_cursor.h"
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
    if (grouping->is_float8()) writer.member("codes", dtype_name(DType::f8_e4m3));
    if (grouping->has_multiples()) {
      writer.member("groups_per_factor", grouping->groups_per_factor);
    }
    if (part.format.has_input_order) writer.member("has_input_order", true);
  }
  writer.end_object();
}

int small_number(const JsonCursor& field) {
  return static_cast<int>(field.integer({.min = 0, .max = 255}));
}

Grouping read_grouping(const JsonCursor& part) {
  Grouping grouping;
  grouping.bits = small_number(part.at("bits"));
  grouping.group_size = part.at("group_size").integer();
  if (const auto zero_point = part.find("zero_point")) {
    grouping.zero_point = small_number(*zero_point);
  }
  if (const auto groups = part.find("groups_per_factor")) {
    grouping.groups_per_factor = small_number(*groups);
  }
  if (const auto codes = part.find("codes")) {
    if (codes->string() != dtype_name(DType::f8_e4m3)) codes->mismatch("float8_e4m3");
    grouping.codes = CodeType::e4m3;
  }
  return grouping;
}

Part read_part(const JsonCursor& field) {
  Part part{
      .name = field.at("name").string(), .format = {.n = field.at("n").integer()}, .bytes = {}};
  if (const auto k = field.find("k")) {
    const JsonCursor name = field.at("dtype");
    const auto dtype = parse_dtype(name.string());
    if (!dtype) name.mismatch("a dtype");
    part.format.kind = PartKind::matrix;
    part.format.dtype = *dtype;
    part.format.k = k->integer();
  }
  if (field.find("bits")) part.format.grouping = read_grouping(field);
  part.format.has_input_order = field.boolean_or("has_input_order", false);
  if (!part_bytes(part.format)) field.fail("describes a weight that can't be");
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
  const Json parsed = parse_json(json, where, ErrorCode::corrupt);
  const JsonCursor root(parsed, std::string(where), ErrorCode::corrupt);
  PreparedTable table{.key = root.at("key").string(), .digest = {}, .weights = {}};
  const std::string& digest = root.at("digest").string();
  constexpr size_t kHexDigits = 32;
  if (digest.size() != kHexDigits ||
      digest.find_first_not_of("0123456789abcdef") != std::string::npos) {
    root.at("digest").mismatch("32 hex digits");
  }
  table.digest = {.low = std::stoull(digest.substr(kHexDigits / 2), nullptr, 16),
                  .high = std::stoull(digest.substr(0, kHexDigits / 2), nullptr, 16)};
  table.weights.num_parameters = root.at("num_parameters").integer();
  table.weights.is_quantised = root.at("is_quantised").boolean();
  for (const JsonCursor& part : root.at("parts").items()) {
    table.weights.parts.push_back(read_part(part));
  }
  return table;
}

}  // namespace paceline
