// RequestReader takes an object's members by tables that say what becomes of each field.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/json_cursor.h"
#include "protocol/field_info.h"
#include "protocol/field_value.h"

namespace paceline {

// A FieldInfo, and what takes the value when it was found to be of the type.
template <class T>
struct FieldDef {
  std::string_view name;
  FieldType type = kAnyValue;
  FieldUse use = FieldUse::implemented;
  bool is_required = false;
  FieldDefault by_default = {};
  std::string_view when_unset = {};
  std::string_view alias_of = {};
  std::string_view help = {};
  void (*read)(const FieldValue& value, T& target) = nullptr;  // none: it is enough to check it
};

template <class T>
using FieldTable = std::span<const FieldDef<T>>;

// A member whose value is null counts as absent, whatever its name.
class RequestReader {
 public:
  // Of a member of the request, which is an object.
  explicit RequestReader(const FieldValue& object);
  // Of the body of a request. Throws RequestError when it is no object. Both must outlive it.
  RequestReader(const Json& body, const RequestTerms& terms);

  // Reads the members that the table has into `target`. Throws RequestError for one that is refused
  // or isn't what its type says.
  template <class T>
  void read(FieldTable<T> fields, T& target) {
    for (const FieldDef<T>& field : fields) {
      const auto value = take(field.name, field.is_required);
      if (!value) continue;
      if (field.use == FieldUse::refused) refuse_field(field.name, field.help);
      const FieldValue found(*value, terms_);
      found.check(field.type);
      if (field.read != nullptr) field.read(found, target);
    }
  }

  // Throws RequestError, with a suggestion, for a member that no table read so far has, unless the
  // terms say otherwise, and for a required one that is missing.
  void finish() const;
  // Throws RequestError for a member that must be there.
  void require(std::string_view name) const;

 private:
  std::optional<JsonCursor> take(std::string_view name, bool is_required);
  std::string path_of(std::string_view name) const;
  [[noreturn]] void refuse_field(std::string_view name, std::string_view help) const;

  JsonCursor object_;
  const RequestTerms& terms_;
  std::vector<std::string_view> known_;
  std::vector<std::string_view> required_;
};

// The table as documentation sees it, behind `list`.
template <class T>
void append_fields(FieldTable<T> fields, FieldList& list) {
  for (const FieldDef<T>& field : fields) {
    list.push_back({.name = field.name,
                    .type = field.type,
                    .use = field.use,
                    .is_required = field.is_required,
                    .by_default = field.by_default,
                    .when_unset = field.when_unset,
                    .alias_of = field.alias_of,
                    .help = field.help});
  }
}

template <class T>
FieldList list_fields(FieldTable<T> fields) {
  FieldList list;
  append_fields(fields, list);
  return list;
}

// Of an object whose members are one table's: its type is object_type(fields_of<kTable>), and its
// reader read_members<kTable>.
template <class T, size_t num_fields>
FieldTable<T> table_of(const FieldDef<T> (&fields)[num_fields]) {
  return fields;
}
template <const auto& fields>
FieldList fields_of() {
  return list_fields(table_of(fields));
}
template <const auto& fields, class T>
void read_members(const FieldValue& value, T& target) {
  RequestReader reader(value);
  reader.read(table_of(fields), target);
  reader.finish();
}

template <class T, class Value>
T owner_of(Value T::*member);
// A reader that stores the value in a member: a text, a boolean, an integer, a Json, the FieldValue
// itself, or an optional one.
template <auto member>
void store(const FieldValue& value, decltype(owner_of(member))& target) {
  auto& slot = target.*member;
  using Slot = std::remove_reference_t<decltype(slot)>;
  if constexpr (std::is_same_v<Slot, bool> || std::is_same_v<Slot, std::optional<bool>>) {
    slot = value.boolean();
  } else if constexpr (std::is_same_v<Slot, Json>) {
    slot = value.json();
  } else if constexpr (std::is_assignable_v<Slot&, FieldValue>) {
    slot = value;
  } else if constexpr (std::is_integral_v<Slot> || std::is_same_v<Slot, std::optional<int64_t>>) {
    slot = value.integer();
  } else {
    slot = value.text();
  }
}

}  // namespace paceline
