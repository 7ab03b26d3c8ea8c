#include "protocol/schemas.h"

#include <algorithm>

namespace paceline {
namespace {

// In the order of FieldKind; "any" and "one of" have none.
constexpr std::string_view kTypeNames[] = {"",      "boolean", "integer", "number", "string",
                                           "array", "array",   "object",  ""};
constexpr bool kBooleans[] = {false, true};

class SchemaWriter {
 public:
  SchemaWriter(JsonWriter& writer, const RequestTerms& terms) : writer_(writer), terms_(terms) {}

  void write_object(const FieldList& fields) {
    writer_.begin_object().member("type", "object");
    write_members(fields);
    writer_.end_object();
  }

 private:
  void write_members(const FieldList& fields) {
    writer_.key("properties").begin_object();
    for (const FieldInfo& field : fields) write_field(field);
    writer_.end_object();
    if (std::any_of(fields.begin(), fields.end(), [](const auto& f) { return f.is_required; })) {
      writer_.key("required").begin_array();
      for (const FieldInfo& field : fields) {
        if (field.is_required) writer_.string(field.name);
      }
      writer_.end_array();
    }
    writer_.member("additionalProperties", terms_.on_unknown_field != nullptr);
  }

  void write_field(const FieldInfo& field) {
    writer_.key(field.name).begin_object();
    if (field.use == FieldUse::refused) {
      writer_.member("type", "null");
    } else {
      write_body(field.type, !field.is_required);
    }
    if (!field.help.empty()) writer_.member("description", field.help);
    write_default(field.by_default);
    if (!field.when_unset.empty()) writer_.member("x-when-unset", field.when_unset);
    if (!field.alias_of.empty()) writer_.member("x-alias-of", field.alias_of);
    writer_.member("x-use", use_name(field)).end_object();
  }

  static std::string_view use_name(const FieldInfo& field) {
    if (field.use == FieldUse::accepted) return "ignored";
    if (field.use == FieldUse::refused) return "refused";
    return field.type.is_part_of_api ? "partly" : "implemented";
  }

  void write_default(const FieldDefault& value) {
    if (const auto* flag = std::get_if<bool>(&value)) writer_.member("default", *flag);
    if (const auto* whole = std::get_if<int64_t>(&value)) writer_.member("default", *whole);
    if (const auto* real = std::get_if<double>(&value)) writer_.member("default", *real);
    if (const auto* text = std::get_if<std::string_view>(&value)) writer_.member("default", *text);
  }

  void write_type(const FieldType& type) {
    writer_.begin_object();
    write_body(type, false);
    writer_.end_object();
  }

  // The members of the schema, without its braces.
  void write_body(const FieldType& type, bool or_null) {
    if (type.kind == FieldKind::one_of) return write_one_of(type, or_null);
    const std::string_view name = kTypeNames[static_cast<size_t>(type.kind)];
    if (name.empty()) return;
    writer_.key("type");
    if (or_null) {
      writer_.begin_array().string(name).string("null").end_array();
    } else {
      writer_.string(name);
    }
    switch (type.kind) {
      case FieldKind::boolean:
        if (type.booleans != Booleans::both) {
          write_enum(std::span(&kBooleans[type.booleans == Booleans::only_true ? 1 : 0], 1),
                     or_null);
        }
        return;
      case FieldKind::integer:
        writer_.member("minimum", type.min);
        writer_.member("maximum",
                       type.counts_choices ? std::min(type.max, terms_.max_choices) : type.max);
        return;
      case FieldKind::number:
        writer_.member(type.range.above_min ? "exclusiveMinimum" : "minimum", type.range.min);
        writer_.member("maximum", type.range.max);
        return;
      case FieldKind::text:
        write_bounds(type, "minLength", "maxLength");
        if (type.max != kNoMaximum) writer_.member("x-max-bytes", type.max);
        if (!type.words.empty()) write_enum(type.words, or_null);
        return;
      case FieldKind::object:
        return write_map(type);
      default:
        return write_array(type);
    }
  }

  void write_bounds(const FieldType& type, std::string_view min, std::string_view max) {
    if (type.min != 0) writer_.member(min, type.min);
    if (type.max != kNoMaximum) writer_.member(max, type.max);
  }

  template <class Value>
  void write_enum(std::span<const Value> values, bool or_null) {
    writer_.key("enum").begin_array();
    for (const Value& value : values) writer_.value(value);
    if (or_null) writer_.null();
    writer_.end_array();
  }

  void write_array(const FieldType& type) {
    write_bounds(type, "minItems", "maxItems");
    if (type.kind == FieldKind::tuple) {
      writer_.key("prefixItems").begin_array();
      for (const FieldType& part : type.parts) write_type(part);
      writer_.end_array();
    } else if (type.item != nullptr) {
      writer_.key("items");
      write_type(*type.item);
    }
  }

  void write_map(const FieldType& type) {
    write_bounds(type, "minProperties", "maxProperties");
    if (type.members != nullptr) return write_members(type.members());
    if (type.keys_are_ids) {
      writer_.key("propertyNames").begin_object().member("pattern", "^[0-9]{1,9}$").end_object();
    }
    if (type.item == nullptr) return;
    writer_.key("additionalProperties");
    write_type(*type.item);
  }

  void write_one_of(const FieldType& type, bool or_null) {
    writer_.key("anyOf").begin_array();
    for (const FieldType& part : type.parts) write_type(part);
    if (or_null) writer_.begin_object().member("type", "null").end_object();
    writer_.end_array();
  }

  JsonWriter& writer_;
  const RequestTerms& terms_;
};

}  // namespace

void write_fields_schema(JsonWriter& writer, const FieldList& fields, const RequestTerms& terms) {
  SchemaWriter(writer, terms).write_object(fields);
}

}  // namespace paceline
