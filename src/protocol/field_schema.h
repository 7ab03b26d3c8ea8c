// JSON Schemas of requests, made from the tables that read them.
#pragma once

#include "base/json_writer.h"
#include "protocol/field_type.h"
#include "protocol/field_value.h"

namespace paceline {

// {"type": "object", "properties": {...}, "required": [...], "additionalProperties": false}
// A property has "description", "default", "x-when-unset" (the default in words), and "x-use"
// (implemented, partly, ignored, refused), "x-alias-of" and "x-max-bytes" where they apply.
// Optional properties may be null, which counts as absent.
void write_fields_schema(JsonWriter& writer, const FieldList& fields, const RequestTerms& terms);

}  // namespace paceline
