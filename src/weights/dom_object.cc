#include "weights/dom_object.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "weights/quoted_name.h"

namespace paceline {

simdjson::dom::object parse_dom_object(simdjson::dom::parser& parser,
                                       std::span<const std::byte> text, std::string_view where) {
  if (text.empty()) throw Error(ErrorCode::corrupt, fmt::format("{}: empty, not JSON", where));
  simdjson::dom::element root;
  const auto status =
      parser.parse(reinterpret_cast<const char*>(text.data()), text.size()).get(root);
  if (status == simdjson::MEMALLOC) {
    throw Error(ErrorCode::exhausted,
                fmt::format("{}: no memory to parse {} bytes of JSON", where, text.size()));
  }
  if (status != simdjson::SUCCESS) {
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: not JSON: {}", where, simdjson::error_message(status)));
  }
  simdjson::dom::object object;
  if (root.get(object) != simdjson::SUCCESS) {
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: expected an object, found {}", where, dom_kind(root)));
  }
  return object;
}

std::vector<DomMember> unique_members(const simdjson::dom::object& object, std::string_view where) {
  std::vector<DomMember> members;
  for (const auto field : object) members.push_back({field.key, field.value});
  std::sort(members.begin(), members.end(),
            [](const DomMember& a, const DomMember& b) { return a.key < b.key; });
  const auto twice =
      std::adjacent_find(members.begin(), members.end(),
                         [](const DomMember& a, const DomMember& b) { return a.key == b.key; });
  if (twice != members.end()) {
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: the key {} stands twice", where, quoted_name(twice->key)));
  }
  return members;
}

std::string_view dom_kind(const simdjson::dom::element& element) {
  using simdjson::dom::element_type;
  switch (element.type()) {
    case element_type::ARRAY:
      return "an array";
    case element_type::OBJECT:
      return "an object";
    case element_type::INT64:
      return element.get<int64_t>().value() < 0 ? "a negative integer" : "an integer";
    case element_type::UINT64:
      return "an integer";
    case element_type::DOUBLE:
      return "a number that isn't an integer";
    case element_type::STRING:
      return "a string";
    case element_type::BOOL:
      return "a boolean";
    case element_type::NULL_VALUE:
      return "null";
  }
  return "something else";
}

}  // namespace paceline
