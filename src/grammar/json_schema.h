// JSON Schema (drafts 4 to 2020-12) as a grammar of the JSON texts that it accepts.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "grammar/grammar.h"
#include "grammar/schema_node.h"
#include "grammar/text_form.h"

namespace paceline {

class SchemaDocument;

struct JsonSchemaOptions {
  // What would only be an annotation, as an unknown `format`, is an error.
  bool strict = false;
  GrammarLimits limits;
};

// `schema` is the text of a schema. Errors name the keyword and its path.
Grammar compile_json_schema(std::string_view schema, const JsonSchemaOptions& options = {});

// The same as a rule of `builder`, for a grammar that has more.
RuleId add_json_schema(std::string_view schema, GrammarBuilder& builder, bool strict = false);

// The properties of one schema as parts of a grammar, each with all that the document defines.
class JsonSchemaProperties {
 public:
  // `schema` is the text of an object with `properties`; it must outlive this, as the builder must.
  JsonSchemaProperties(std::string_view schema, GrammarBuilder& builder);
  ~JsonSchemaProperties();

  // Whether the property accepts values of these kinds.
  bool has_values(size_t property, JsonKinds kinds);
  // The JSON texts of the values of these kinds that the property accepts; nothing: there are none.
  // Properties are counted from 0, as they stand.
  std::optional<RuleId> rule(size_t property, JsonKinds kinds);
  // The strings that it accepts, without quotes in the form `form`.
  RegexId strings(size_t property, TextForm form);

 private:
  SchemaDocument& document(TextForm form);
  SchemaSet values(size_t property, JsonKinds kinds);

  std::string_view schema_;
  GrammarBuilder& builder_;
  std::array<std::unique_ptr<SchemaDocument>, 2> documents_;  // by the form of strings
  std::map<JsonKinds, SchemaLiteral> of_kinds_;               // any value of them
};

// Any JSON object, nested at most 64 deep.
Grammar any_json_object(const GrammarLimits& limits = {});
RuleId add_any_json_object(GrammarBuilder& builder);

}  // namespace paceline
