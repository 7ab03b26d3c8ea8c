// JSON Schema (drafts 4 to 2020-12) as a grammar of the JSON texts that it accepts.
#pragma once

#include <string_view>

#include "grammar/grammar.h"

namespace paceline {

struct JsonSchemaOptions {
  // What would only be an annotation, as an unknown `format`, is an error.
  bool strict = false;
  GrammarLimits limits;
};

// `schema` is the text of a schema. Errors name the keyword and its path.
Grammar compile_json_schema(std::string_view schema, const JsonSchemaOptions& options = {});

// The same as a rule of `builder`, for a grammar that has more.
RuleId add_json_schema(std::string_view schema, GrammarBuilder& builder, bool strict = false);

// Any JSON object, nested at most 64 deep.
Grammar any_json_object(const GrammarLimits& limits = {});
RuleId add_any_json_object(GrammarBuilder& builder);

}  // namespace paceline
