#include "tools/arguments_grammar.h"

#include "base/json.h"
#include "grammar/json_schema.h"
#include "grammar/json_text.h"
#include "grammar/text_grammar.h"
#include "tools/grammar_path.h"
#include "tools/schema_parts.h"
#include "tools/strict_parameters.h"

namespace paceline {
namespace {

// A JSON string that holds the object.
RuleId add_quoted_object(const std::string& schema, const SpecialText& special, SchemaRigor rigor,
                         GrammarBuilder& builder) {
  GrammarPath path(builder, special, "quoted arguments");
  path.text("\"");
  ByteSpelling spelling = json_string_spelling();
  builder.spell_terminals(&spelling);
  const RuleId object = add_json_schema(schema, builder, rigor);
  builder.spell_terminals(nullptr);
  path.call(object);
  path.text("\"");
  return path.end();
}

// The arguments of a tool whose input has a grammar.
RuleId add_input_grammar(const ArgumentsFormat& format, const Tool& tool,
                         const SpecialText& special, GrammarBuilder& builder) {
  using Style = ArgumentsFormat::Style;
  const bool is_plain =
      format.style == Style::parameters && format.string_escapes == StringNotation::Escapes::none;
  if (format.style != Style::json_object && !is_plain) {
    throw Error(ErrorCode::unsupported,
                "a grammar of its input can't be enforced in the calls of this chat template");
  }
  GrammarPath path(builder, special, "arguments");
  path.text(is_plain ? format.begin_blanks + format.before_key + "input" + format.string_frame.open
                     : "{\"input\": \"");
  ByteSpelling spelling = json_string_spelling();
  if (!is_plain) builder.spell_terminals(&spelling);
  const RuleId input = add_grammar_text(tool.input_grammar(), builder);
  builder.spell_terminals(nullptr);
  path.call(input);
  path.text(is_plain ? format.string_frame.close + format.end_blanks : "\"}");
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
  add_json_schema(schema, unused, SchemaRigor::strict);
}

// What isn't enforced of arguments that a template writes one by one.
void check_parameters(const ArgumentsFormat& format, const Tool& tool, GrammarBuilder& builder) {
  try {
    check_strict_parameters(format, tool);
  } catch (const Error& error) {
    if (tool.is_strict() || error.code() != ErrorCode::unsupported) throw;
    builder.warn(error.what());
  }
}

bool is_over_a_limit(const ArgumentsFormat& format, const Tool& tool, const SpecialText& special) {
  try {
    GrammarBuilder alone;
    const RuleId rule = add_arguments_grammar(format, tool, special, alone);
    std::move(alone).finish(rule);
    return false;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::exhausted) throw;
    return true;
  }
}

}  // namespace

ToolSet wider_tools(const ToolSet& tools, size_t widening, const ArgumentsFormat& format,
                    const SpecialText& special) {
  std::vector<ToolSpec> wider;
  for (const Tool& tool : tools.tools()) {
    ToolSpec& spec = wider.emplace_back(ToolSpec{.name = tool.name(),
                                                 .parameters = tool.schema(),
                                                 .is_strict = tool.is_strict(),
                                                 .input_grammar = tool.input_grammar()});
    if (tool.is_strict() || !tool.input_grammar().empty()) continue;
    std::vector<std::string> schemas = wider_schemas(tool.schema());
    if (widening > 1) {
      spec.parameters = std::move(schemas.back());
      continue;
    }
    for (size_t next = 0; next < schemas.size(); ++next) {
      if (!is_over_a_limit(format, Tool(spec), special)) break;
      spec.parameters = std::move(schemas[next]);
    }
  }
  return ToolSet(std::move(wider));
}

RuleId add_arguments_grammar(const ArgumentsFormat& format, const Tool& tool,
                             const SpecialText& special, GrammarBuilder& builder) {
  const std::string place = "tool " + tool.name() + ": ";
  builder.set_warning_place(place);
  try {
    if (tool.is_strict()) check_strictly(tool.schema());
    RuleId rule{};
    if (!tool.input_grammar().empty()) {
      rule = add_input_grammar(format, tool, special, builder);
      builder.set_warning_place("");
      return rule;
    }
    switch (format.style) {
      case ArgumentsFormat::Style::json_object:
        rule = add_json_schema(schema_of(format, tool), builder, tool.rigor());
        break;
      case ArgumentsFormat::Style::json_string:
        rule = add_quoted_object(schema_of(format, tool), special, tool.rigor(), builder);
        break;
      case ArgumentsFormat::Style::parameters:
        check_parameters(format, tool, builder);
        rule = add_parameters_grammar(format, tool, special, builder);
        break;
    }
    builder.set_warning_place("");
    return rule;
  } catch (const Error& error) {
    throw Error(error.code(), place + error.what());
  }
}

}  // namespace paceline
