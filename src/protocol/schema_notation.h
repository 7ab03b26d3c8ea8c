// A short notation of JSON Schemas, in which the answers of the API are described.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// `text` has definitions, "Name = type", which become the members of one JSON object. A type is
//   string, text (not empty), integer, count (from 0), number, boolean, null, array, object, any
//   integer 1..9, number 0.. (bounds, either may be missing), /pattern/ (of a string)
//   'word', 7, true (constants), Name (another definition), a | b (one of several)
//   [type] (an array), [type]+ (at least one item), [] (none)
//   {name: type, other?: type} (an object, whose members may be optional)
//   {name: any, ...} (an object that has these members, and others)
//   {*: type}, {/pattern/: type} (an object with any keys, or with such ones)
// with a description in double quotes behind it, or behind one of its members. Definitions whose
// names are in lower case are no schemas: objects take their members over as ...name, and as
// ...name? when all of them are optional.
std::string schemas_json(std::string_view text);

}  // namespace paceline
