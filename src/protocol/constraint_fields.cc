#include "protocol/request_fields.h"

#include <utility>

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
  if (target.spec == spec) return;
  if (target.spec) {
    throw invalid_field(value.path(), "found beside {}, expected one constraint only",
                        target.field);
  }
  target = {.spec = std::move(spec), .field = value.path()};
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
  set(value, {.kind = Kind::choice, .choices = value.texts()}, target);
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
    field("name", kAnyText, "What the schema is called; changes nothing."),
    field("description", kAnyText, "Changes nothing: the prompt says it."),
    field("strict", kBoolean, kStrictSchemaHelp, kOff, store<&NamedSchema::is_strict>),
    field("schema", kSchema, "The schema; without one any JSON object will do.",
          [](const FieldValue& v, NamedSchema& t) { read_schema(v, t.constraint); }),
};

struct ResponseFormat {
  std::string type;
  std::optional<NamedSchema> named;
  AskedConstraint schema;
};

constexpr FieldDef<ResponseFormat> kFormatFields[] = {
    required("type", only_words_type(kFormatWords),
             "json_object: any JSON object. json_schema: JSON that the schema accepts.",
             store<&ResponseFormat::type>),
    field("json_schema", object_type(fields_of<kNamedSchemaFields>),
          "OpenAI's place of the schema.",
          [](const FieldValue& v, ResponseFormat& t) {
            t.named = read_object<kNamedSchemaFields>(v);
          }),
    field("schema", kSchema, "llama.cpp's place of the schema.",
          [](const FieldValue& v, ResponseFormat& t) { read_schema(v, t.schema); }),
};

void read_response_format(const FieldValue& value, AskedConstraint& target) {
  auto format = read_object<kFormatFields>(value);
  if (format.type == "text") return;
  if (format.named && format.schema.spec) {
    throw invalid_field(format.schema.field, "{}.json_schema has a schema already", value.path());
  }
  if (format.type == "json_schema" && !format.named && !format.schema.spec) {
    RequestReader(value).require("json_schema");
  }
  AskedConstraint asked = format.named ? std::move(format.named->constraint) : format.schema;
  if (!asked.spec) return set(value, {.kind = Kind::json_object}, target);
  asked.spec->strict = format.named && format.named->is_strict;
  asked.spec->best_effort = format.named && !format.named->is_strict;
  set(value, std::move(*asked.spec), target);
  target.field = std::move(asked.field);
}

constexpr FieldDef<AskedConstraint> kStructuredFields[] = {
    field("json", kSchema, "A JSON Schema.", read_schema),
    field("regex", kPatternText, "A regular expression that the whole text matches.", read_regex),
    field("choice", kChoiceTexts, "Texts, one of them.", read_choice),
    field("grammar", kPatternText, "A grammar in GBNF or Lark's notation.", read_grammar),
    field("json_object", kBoolean, "Any JSON object.", kOff, read_any_object),
    ignored("disable_fallback", kBoolean, "There is nothing to fall back to."),
    field("disable_any_whitespace", kOnlyFalse, "Only false."),
    field("disable_additional_properties", kOnlyFalse, "Only false."),
    refused("whitespace_pattern"),
    refused("structural_tag", "use tools"),
};

constexpr FieldDef<AskedConstraint> kConstraintFields[] = {
    field("response_format", object_type(fields_of<kFormatFields>),
          "What the answer must be: text, any JSON object, or JSON of a schema.",
          read_response_format),
    object<kStructuredFields>("structured_outputs",
                              "vLLM's way to say what the answer must be; one of json, regex, "
                              "choice, grammar and json_object."),
    field("guided_json", kSchema, "vLLM's older name of structured_outputs.json.", read_schema),
    field("guided_regex", kPatternText, "vLLM's older name of structured_outputs.regex.",
          read_regex),
    field("guided_choice", kChoiceTexts, "vLLM's older name of structured_outputs.choice.",
          read_choice),
    field("guided_grammar", kPatternText, "vLLM's older name of structured_outputs.grammar.",
          read_grammar),
    ignored("guided_decoding_backend", kAnyText,
            "vLLM's older name of a program that finds masks; there is one."),
    refused("guided_whitespace_pattern"),
    field("json_schema", kSchema, "llama.cpp's name of structured_outputs.json.", read_schema),
    field("grammar", kPatternText,
          "llama.cpp's name of structured_outputs.grammar; an empty string: none.",
          {.by_default = ""}, read_grammar),
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
