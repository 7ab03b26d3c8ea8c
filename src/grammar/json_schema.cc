#include "grammar/json_schema.h"

#include "grammar/schema_emitter.h"

namespace paceline {

namespace {

// Names are looked for in JSON as it is written, not in a spelling of it.
RuleId as_json(RuleId rule, const SchemaEmitter& emitter, GrammarBuilder& builder) {
  if (emitter.has_open_names() && !builder.spells_terminals()) builder.set_json(rule);
  return rule;
}

// Nothing: the set has no values.
std::optional<RuleId> emit_set(const SchemaSet& set, SchemaDocument& document,
                               GrammarBuilder& builder) {
  SchemaEmitter emitter(builder, document);
  if (!emitter.has_values(set)) return std::nullopt;
  const RuleId rule = emitter.rule(set);
  emitter.finish();
  return as_json(rule, emitter, builder);
}

RuleId emit_schema(std::string_view schema, bool strict, GrammarBuilder& builder) {
  SchemaDocument document(schema, strict, builder.regexes());
  const auto rule = emit_set({document.root()}, document, builder);
  if (!rule) throw Error(ErrorCode::invalid, "schema: no value obeys it");
  return *rule;
}

}  // namespace

JsonSchemaProperties::JsonSchemaProperties(std::string_view schema, GrammarBuilder& builder)
    : schema_(schema), builder_(builder) {}

JsonSchemaProperties::~JsonSchemaProperties() = default;

SchemaDocument& JsonSchemaProperties::document(TextForm form) {
  auto& document = documents_[static_cast<size_t>(form)];
  if (!document) {
    document = std::make_unique<SchemaDocument>(schema_, false, builder_.regexes(), form);
  }
  return *document;
}

SchemaSet JsonSchemaProperties::values(Places places, TextForm form) {
  SchemaSet set;
  for (const JsonSchemaPlace& place : places) {
    set.push_back(document(form).property(place.owner, place.index));
  }
  return set;
}

SchemaSet JsonSchemaProperties::values(Places places, JsonKinds kinds) {
  SchemaSet set = values(places, TextForm::json);
  if (kinds == kAllKinds) return set;
  auto [of_kinds, is_new] = of_kinds_.try_emplace(kinds);
  if (is_new) of_kinds->second = document(TextForm::json).add({.kinds = kinds});
  set.push_back(of_kinds->second);
  return set;
}

bool JsonSchemaProperties::has_values(Places places, JsonKinds kinds) {
  return SchemaEmitter(builder_, document(TextForm::json)).has_values(values(places, kinds));
}

std::optional<RuleId> JsonSchemaProperties::rule(Places places, JsonKinds kinds) {
  return emit_set(values(places, kinds), document(TextForm::json), builder_);
}

RegexId JsonSchemaProperties::strings(Places places, TextForm form) {
  SchemaScalars scalars(builder_.regexes(), form);
  SchemaNormaliser normaliser(document(form), scalars);
  return normaliser.string_language(values(places, form));
}

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
