// JSON Schemas for /openapi.json: of requests, made from the tables that read them, and of answers,
// from a short notation.
#pragma once

#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "protocol/field_value.h"

namespace paceline {

// {"type": "object", "properties": {...}, "required": [...], "additionalProperties": false}
// A property has "description", "default", "x-when-unset" (the default in words), and "x-use"
// (implemented, partly, ignored, refused), "x-alias-of" and "x-max-bytes" where they apply.
// Optional properties may be null, which counts as absent.
void write_fields_schema(JsonWriter& writer, const FieldList& fields, const RequestTerms& terms);

// {"Error": {...}, "Completion": {...}, ...}: the components that the routes refer to.
std::string_view response_schemas_json();

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
