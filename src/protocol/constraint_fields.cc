#include "protocol/constraint_fields.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/request_error.h"
#include "grammar/constraint_cache.h"
#include "text/make_request.h"

namespace paceline {
namespace {

using Kind = ConstraintSpec::Kind;

constexpr uint64_t kMaxConstraintBytes = 256 << 10;  // what compilers take
constexpr uint64_t kMaxChoiceTexts = 1 << 16;

constexpr FieldType kSchemaKinds[] = {kAnyObject, kBoolean, text_type(0, kMaxConstraintBytes)};
// A schema, or its text.
constexpr FieldType kSchema = one_of_type(kSchemaKinds, "a JSON Schema, or its text");
constexpr FieldType kPatternText = text_type(0, kMaxConstraintBytes);
constexpr FieldType kChoiceTexts = array_type(kAnyText, 1, kMaxChoiceTexts);

// Clients of several versions of vLLM send the same constraint under its old and its new name.
void set(const FieldValue& value, ConstraintSpec spec, AskedConstraint& target) {
  const std::string field(value.path());
  if (target.spec == spec) return;
  if (target.spec) {
    throw invalid_field(field,
                        fmt::format("found beside {}, expected one constraint only", target.field));
  }
  target.spec = std::move(spec);
  target.field = field;
}

std::string schema_text(const FieldValue& value) {
  return value.json().is_string() ? value.text() : to_json(value.json());
}

void read_schema(const FieldValue& value, AskedConstraint& target) {
  set(value, {.kind = Kind::json_schema, .text = schema_text(value)}, target);
}

void read_regex(const FieldValue& value, AskedConstraint& target) {
  set(value, {.kind = Kind::regex, .text = value.text()}, target);
}

// llama.cpp's clients send an empty grammar where there is none.
void read_grammar(const FieldValue& value, AskedConstraint& target) {
  if (value.text().empty()) return;
  set(value, {.kind = Kind::grammar, .text = value.text()}, target);
}

void read_choice(const FieldValue& value, AskedConstraint& target) {
  ConstraintSpec spec{.kind = Kind::choice};
  for (const FieldValue& item : value.items()) spec.choices.push_back(item.text());
  set(value, std::move(spec), target);
}

void read_any_object(const FieldValue& value, AskedConstraint& target) {
  if (value.boolean()) set(value, {.kind = Kind::json_object}, target);
}

// response_format.json_schema.
struct NamedSchema {
  AskedConstraint constraint;
  bool is_strict = false;
};

constexpr FieldDef<NamedSchema> kNamedSchemaFields[] = {
    {.name = "name", .type = kAnyText, .help = "What the schema is called; changes nothing."},
    {.name = "description", .type = kAnyText, .help = "Changes nothing: the prompt says it."},
    {.name = "strict",
     .type = kBoolean,
     .by_default = false,
     .help = "Refuse a schema with a part that can't be enforced, or a format that isn't known; "
             "else such parts are left out and named in the answer's warnings.",
     .read = [](const FieldValue& v, NamedSchema& t) { t.is_strict = v.boolean(); }},
    {.name = "schema",
     .type = kSchema,
     .help = "The schema; without one any JSON object will do.",
     .read = [](const FieldValue& v, NamedSchema& t) { read_schema(v, t.constraint); }},
};

constexpr std::string_view kFormatWords[] = {"text", "json_object", "json_schema"};

struct ResponseFormat {
  std::string type;
  std::optional<NamedSchema> named;
  AskedConstraint schema;
};

void read_named_schema(const FieldValue& value, ResponseFormat& format) {
  RequestReader reader(value);
  reader.read<NamedSchema>(kNamedSchemaFields, format.named.emplace());
  reader.finish();
}

constexpr FieldDef<ResponseFormat> kFormatFields[] = {
    {.name = "type",
     .type = only_words_type(kFormatWords),
     .is_required = true,
     .help = "json_object: any JSON object. json_schema: JSON that the schema accepts.",
     .read = [](const FieldValue& v, ResponseFormat& t) { t.type = v.text(); }},
    {.name = "json_schema",
     .type = object_type(fields_of<kNamedSchemaFields>),
     .help = "OpenAI's place of the schema.",
     .read = read_named_schema},
    {.name = "schema",
     .type = kSchema,
     .help = "llama.cpp's place of the schema.",
     .read = [](const FieldValue& v, ResponseFormat& t) { read_schema(v, t.schema); }},
};

void read_response_format(const FieldValue& value, AskedConstraint& target) {
  ResponseFormat format;
  RequestReader reader(value);
  reader.read<ResponseFormat>(kFormatFields, format);
  reader.finish();
  if (format.type == "text") return;
  if (format.named && format.schema.spec) {
    throw invalid_field(format.schema.field,
                        fmt::format("{}.json_schema has a schema already", value.path()));
  }
  if (format.type == "json_schema" && !format.named && !format.schema.spec) {
    reader.require("json_schema");
  }
  AskedConstraint asked = format.named ? std::move(format.named->constraint) : format.schema;
  if (!asked.spec) return set(value, {.kind = Kind::json_object}, target);
  asked.spec->strict = format.named && format.named->is_strict;
  asked.spec->best_effort = format.named && !format.named->is_strict;
  set(value, std::move(*asked.spec), target);
  target.field = std::move(asked.field);
}

constexpr FieldDef<AskedConstraint> kStructuredFields[] = {
    {.name = "json", .type = kSchema, .help = "A JSON Schema.", .read = read_schema},
    {.name = "regex",
     .type = kPatternText,
     .help = "A regular expression that the whole text matches.",
     .read = read_regex},
    {.name = "choice", .type = kChoiceTexts, .help = "Texts, one of them.", .read = read_choice},
    {.name = "grammar",
     .type = kPatternText,
     .help = "A grammar in GBNF or Lark's notation.",
     .read = read_grammar},
    {.name = "json_object",
     .type = kBoolean,
     .by_default = false,
     .help = "Any JSON object.",
     .read = read_any_object},
    {.name = "disable_fallback",
     .type = kBoolean,
     .use = FieldUse::accepted,
     .help = "There is nothing to fall back to."},
    {.name = "disable_any_whitespace", .type = kOnlyFalse, .help = "Only false."},
    {.name = "disable_additional_properties", .type = kOnlyFalse, .help = "Only false."},
    {.name = "whitespace_pattern", .use = FieldUse::refused},
    {.name = "structural_tag", .use = FieldUse::refused, .help = "use tools"},
};

constexpr FieldDef<AskedConstraint> kConstraintFields[] = {
    {.name = "response_format",
     .type = object_type(fields_of<kFormatFields>),
     .help = "What the answer must be: text, any JSON object, or JSON of a schema.",
     .read = read_response_format},
    {.name = "structured_outputs",
     .type = object_type(fields_of<kStructuredFields>),
     .help = "vLLM's way to say what the answer must be; one of json, regex, choice, grammar and "
             "json_object.",
     .read = read_members<kStructuredFields>},
    {.name = "guided_json",
     .type = kSchema,
     .help = "vLLM's older name of structured_outputs.json.",
     .read = read_schema},
    {.name = "guided_regex",
     .type = kPatternText,
     .help = "vLLM's older name of structured_outputs.regex.",
     .read = read_regex},
    {.name = "guided_choice",
     .type = kChoiceTexts,
     .help = "vLLM's older name of structured_outputs.choice.",
     .read = read_choice},
    {.name = "guided_grammar",
     .type = kPatternText,
     .help = "vLLM's older name of structured_outputs.grammar.",
     .read = read_grammar},
    {.name = "guided_decoding_backend",
     .type = kAnyText,
     .use = FieldUse::accepted,
     .help = "vLLM's older name of a program that finds masks; there is one."},
    {.name = "guided_whitespace_pattern", .use = FieldUse::refused},
    {.name = "json_schema",
     .type = kSchema,
     .help = "llama.cpp's name of structured_outputs.json.",
     .read = read_schema},
    {.name = "grammar",
     .type = kPatternText,
     .by_default = std::string_view(""),
     .help = "llama.cpp's name of structured_outputs.grammar; an empty string: none.",
     .read = read_grammar},
};

}  // namespace

FieldTable<AskedConstraint> constraint_fields() { return kConstraintFields; }

void check_constraint(const AskedConstraint& asked, ConstraintCache* cache) {
  if (!asked.spec || cache == nullptr) return;
  try {
    cache->check(*asked.spec);
  } catch (const Error& error) {
    throw constraint_error(asked.field, error);
  }
}

}  // namespace paceline
