#include "tokenizer/dom_field.h"

#include <fmt/format.h>
#include <simdjson.h>

#include "base/error.h"
#include "tokenizer/json_field.h"

namespace paceline {

using simdjson::dom::element;
using simdjson::dom::element_type;

void FilePlace::corrupt(std::string_view what) const {
  throw Error(ErrorCode::corrupt, fmt::format("{}: {}", file, what));
}

void FilePlace::unsupported(std::string_view what) const {
  throw Error(ErrorCode::unsupported, fmt::format("{}: {} isn't supported", file, what));
}

std::string_view kind_of(const element& value) {
  switch (value.type()) {
    case element_type::ARRAY:
      return "an array";
    case element_type::OBJECT:
      return "an object";
    case element_type::STRING:
      return "a string";
    case element_type::BOOL:
      return "a boolean";
    case element_type::NULL_VALUE:
      return "null";
    default:
      return "a number";
  }
}

simdjson::dom::object object_of(const element& value, std::string_view name, FilePlace place) {
  if (!value.is_object()) {
    place.corrupt(fmt::format("{}: expected an object, found {}", name, kind_of(value)));
  }
  return simdjson::dom::object(value);
}

simdjson::dom::array array_of(const element& value, std::string_view name, FilePlace place) {
  if (!value.is_array()) {
    place.corrupt(fmt::format("{}: expected an array, found {}", name, kind_of(value)));
  }
  return simdjson::dom::array(value);
}

DomMembers members_of(const element& value, std::string_view name, FilePlace place) {
  DomMembers members;
  for (const auto field : object_of(value, name, place)) {
    if (!members.emplace(field.key, field.value).second) {
      place.corrupt(fmt::format("{}: the key {} stands twice", name, in_quotes(field.key)));
    }
  }
  return members;
}

}  // namespace paceline
