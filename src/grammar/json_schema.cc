#include "grammar/json_schema.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/json_writer.h"
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

// The `type` of a schema that has nothing beside it which another draft would not read.
Json type_of(const Json& schema) {
  const Json* type =
      schema.is_object() && schema.find("$ref") == nullptr ? schema.find("type") : nullptr;
  return type == nullptr ? Json(true) : Json(Json::Object{{"type", *type}});
}

}  // namespace

JsonSchemaProperties::JsonSchemaProperties(std::string_view schema, GrammarBuilder& builder,
                                           SchemaRigor rigor)
    : schema_(schema), builder_(builder), rigor_(rigor) {}

JsonSchemaProperties::~JsonSchemaProperties() = default;

SchemaDocument& JsonSchemaProperties::document(TextForm form) {
  auto& document = documents_[static_cast<size_t>(form)];
  if (!document) {
    document = std::make_unique<SchemaDocument>(schema_, rigor_, builder_, form);
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
  SchemaScalars scalars(builder_.regexes(), form, builder_.json_texts());
  SchemaNormaliser normaliser(document(form), scalars);
  return normaliser.string_language(values(places, form));
}

Grammar compile_json_schema(std::string_view schema, const JsonSchemaOptions& options) {
  GrammarBuilder builder(options.limits, options.texts);
  const RuleId rule = add_json_schema(schema, builder, options.rigor);
  return std::move(builder).finish(rule);
}

RuleId add_json_schema(std::string_view schema, GrammarBuilder& builder, SchemaRigor rigor) {
  SchemaDocument document(schema, rigor, builder);
  if (const auto rule = emit_set({document.root()}, document, builder)) return *rule;
  constexpr std::string_view kProblem = "schema: no value obeys it";
  if (document.rigor() != SchemaRigor::best_effort) {
    throw Error(ErrorCode::invalid, std::string(kProblem));
  }
  builder.warn(fmt::format("{}, so any JSON object may stand there", kProblem));
  return add_any_json_object(builder);
}

std::vector<std::string> wider_schemas(std::string_view schema) {
  const Json json = parse_json(schema, "schema");
  const Json any = type_of(json);
  std::vector<std::string> wider;
  const Json* properties = any.is_object() ? json.find("properties") : nullptr;
  if (properties != nullptr && properties->is_object()) {
    Json::Object outline = *any.object();
    Json::Object types;
    for (const auto& [name, value] : *properties->object())
      types.emplace_back(name, type_of(value));
    outline.emplace_back("properties", Json(std::move(types)));
    if (const Json* required = json.find("required")) outline.emplace_back("required", *required);
    wider.push_back(to_json(Json(std::move(outline))));
  }
  wider.push_back(to_json(any));
  return wider;
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
