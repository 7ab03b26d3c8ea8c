#include "tools/arguments_grammar.h"

#include "base/json.h"
#include "grammar/json_schema.h"
#include "grammar/json_text.h"
#include "tools/grammar_path.h"
#include "tools/schema_parts.h"
#include "tools/strict_parameters.h"

namespace paceline {
namespace {

// A JSON string that holds the object.
RuleId add_quoted_object(const std::string& schema, const SpecialText& special,
                         GrammarBuilder& builder) {
  GrammarPath path(builder, special, "quoted arguments");
  path.text("\"");
  ByteSpelling spelling = json_string_spelling();
  builder.spell_terminals(&spelling);
  const RuleId object = add_json_schema(schema, builder);
  builder.spell_terminals(nullptr);
  path.call(object);
  path.text("\"");
  return path.end();
}

std::string schema_of(const ArgumentsFormat& format, const Tool& tool) {
  const Json root = parse_json(tool.schema(), "schema");
  std::string schema = kinds_of_schema(root, root) == kObjectKind
                           ? tool.schema()
                           : schema_of_kinds(tool.schema(), kObjectKind);
  return format.sorts_keys ? with_sorted_properties(schema) : schema;
}

// Error when a part of the schema can't be enforced.
void check_strictly(const std::string& schema) {
  GrammarBuilder unused;
  add_json_schema(schema, unused, true);
}

}  // namespace

RuleId add_arguments_grammar(const ArgumentsFormat& format, const Tool& tool,
                             const SpecialText& special, GrammarBuilder& builder) {
  try {
    if (tool.is_strict()) check_strictly(tool.schema());
    switch (format.style) {
      case ArgumentsFormat::Style::json_object:
        return add_json_schema(schema_of(format, tool), builder);
      case ArgumentsFormat::Style::json_string:
        return add_quoted_object(schema_of(format, tool), special, builder);
      case ArgumentsFormat::Style::parameters:
        if (tool.is_strict()) check_strict_parameters(format, tool);
        break;
    }
    return add_parameters_grammar(format, tool, special, builder);
  } catch (const Error& error) {
    throw Error(error.code(), "tool " + tool.name() + ": " + error.what());
  }
}

}  // namespace paceline
