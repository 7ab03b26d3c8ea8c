// JSON Schema (drafts 4 to 2020-12) as a grammar of the JSON texts that it accepts.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/schema_node.h"
#include "grammar/text_form.h"

namespace paceline {

class SchemaDocument;

struct JsonSchemaOptions {
  SchemaRigor rigor = SchemaRigor::exact;
  JsonTexts texts = JsonTexts::written;
  GrammarLimits limits;
};

// `schema` is the text of a schema. Errors name the keyword and its path.
Grammar compile_json_schema(std::string_view schema, const JsonSchemaOptions& options = {});

// The same as a rule of `builder`, for a grammar that has more.
RuleId add_json_schema(std::string_view schema, GrammarBuilder& builder,
                       SchemaRigor rigor = SchemaRigor::exact);

// Schemas that accept more, for one that is over a limit: with no more than the types of its own
// properties, then with its own type alone.
std::vector<std::string> wider_schemas(std::string_view schema);

// Where the schema of a property stands: among the `properties` of the schema that `owner` refers
// to ("#", "#/allOf/0"), counted from 0.
struct JsonSchemaPlace {
  std::string owner;
  size_t index = 0;
};

// The properties of one schema as parts of a grammar, each with all that the document defines. A
// property may stand at several places, whose schemas all hold.
class JsonSchemaProperties {
 public:
  using Places = std::span<const JsonSchemaPlace>;

  // The text of the schema must outlive this, as the builder must.
  JsonSchemaProperties(std::string_view schema, GrammarBuilder& builder, SchemaRigor rigor);
  ~JsonSchemaProperties();

  // Whether the property accepts values of these kinds.
  bool has_values(Places places, JsonKinds kinds);
  // The JSON texts of the values of these kinds that it accepts; nothing: there are none.
  std::optional<RuleId> rule(Places places, JsonKinds kinds);
  // The strings that it accepts, without quotes in the form `form`.
  RegexId strings(Places places, TextForm form);

 private:
  SchemaDocument& document(TextForm form);
  SchemaSet values(Places places, TextForm form);
  SchemaSet values(Places places, JsonKinds kinds);

  std::string_view schema_;
  GrammarBuilder& builder_;
  SchemaRigor rigor_;
  std::array<std::unique_ptr<SchemaDocument>, 2> documents_;  // by the form of strings
  std::map<JsonKinds, SchemaLiteral> of_kinds_;               // any value of them
};

// Any JSON object, nested at most 64 deep.
Grammar any_json_object(const GrammarLimits& limits = {});
RuleId add_any_json_object(GrammarBuilder& builder);

}  // namespace paceline
