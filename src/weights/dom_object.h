// The JSON objects of weight files: parsed by simdjson, each key once. Included by .cc files only.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace paceline {

struct DomMember {
  std::string_view key;  // lives in the parser
  simdjson::dom::element value;
};

// `text` as one JSON object, which lives in `parser`. Throws Error corrupt "WHERE: ..." when it is
// anything else, exhausted when there is no memory to parse it.
simdjson::dom::object parse_dom_object(simdjson::dom::parser& parser,
                                       std::span<const std::byte> text, std::string_view where);

// The members sorted by key. Throws Error corrupt naming the first key that stands twice.
std::vector<DomMember> unique_members(const simdjson::dom::object& object, std::string_view where);

// What the value is, in words for messages: "a string", "an object", ...
std::string_view dom_kind(const simdjson::dom::element& element);

}  // namespace paceline
