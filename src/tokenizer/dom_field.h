// The parts of a tokenizer's file that are too big for a Json tree, read from simdjson's document.
#pragma once

#include <map>
#include <string_view>

namespace simdjson::dom {
class array;
class element;
class object;
}  // namespace simdjson::dom

namespace paceline {

using DomMembers = std::map<std::string_view, simdjson::dom::element>;

// Names the file in errors.
struct FilePlace {
  std::string_view file;

  [[noreturn]] void corrupt(std::string_view what) const;
  // Throws Error unsupported "FILE: WHAT isn't supported".
  [[noreturn]] void unsupported(std::string_view what) const;
};

// E.g. "an array".
std::string_view kind_of(const simdjson::dom::element& value);

// They throw Error corrupt calling the value by its name when it is something else.
simdjson::dom::object object_of(const simdjson::dom::element& value, std::string_view name,
                                FilePlace place);
simdjson::dom::array array_of(const simdjson::dom::element& value, std::string_view name,
                              FilePlace place);
// Of an object without repeated keys.
DomMembers members_of(const simdjson::dom::element& value, std::string_view name, FilePlace place);

}  // namespace paceline
