#include "grammar/json_schema.h"

#include "grammar/schema_emitter.h"

namespace paceline {

namespace {

// Names are looked for in JSON as it is written, not in a spelling of it.
RuleId as_json(RuleId rule, const SchemaEmitter& emitter, GrammarBuilder& builder) {
  if (emitter.has_open_names() && !builder.spells_terminals()) builder.set_json(rule);
  return rule;
}

RuleId emit_schema(std::string_view schema, bool strict, GrammarBuilder& builder) {
  SchemaDocument document(schema, strict, builder.regexes());
  SchemaEmitter emitter(builder, document);
  const SchemaSet root{document.root()};
  if (!emitter.has_values(root)) {
    throw Error(ErrorCode::invalid, "schema: no value obeys it");
  }
  const RuleId rule = emitter.rule(root);
  emitter.finish();
  return as_json(rule, emitter, builder);
}

}  // namespace

Grammar compile_json_schema(std::string_view schema, const JsonSchemaOptions& options) {
  GrammarBuilder builder(options.limits);
  const RuleId rule = emit_schema(schema, options.strict, builder);
  return std::move(builder).finish(rule);
}

RuleId add_json_schema(std::string_view schema, GrammarBuilder& builder, bool strict) {
  return emit_schema(schema, strict, builder);
}

RuleId add_any_json_object(GrammarBuilder& builder) {
  SchemaEmitter emitter(builder);
  return as_json(emitter.any_object(), emitter, builder);
}

Grammar any_json_object(const GrammarLimits& limits) {
  GrammarBuilder builder(limits);
  const RuleId rule = add_any_json_object(builder);
  return std::move(builder).finish(rule);
}

}  // namespace paceline
