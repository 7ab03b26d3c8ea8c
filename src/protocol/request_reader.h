// RequestReader takes an object's members by tables that say what becomes of each field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/json.h"
#include "base/json_cursor.h"
#include "protocol/field_type.h"
#include "protocol/field_value.h"

namespace paceline {

// Limits of a body, beyond any reasonable request: they bound the time and memory of its tree.
constexpr size_t kMaxMembers = 262'144;                            // of all its objects
constexpr size_t kMaxValues = kMaxListedTokens + 2 * kMaxMembers;  // in total

// Throws RequestError for malformed JSON, and for too many values before it makes a tree.
Json parse_request_body(std::string_view body);

// A FieldInfo, and what takes the value when it was found to be of the type.
template <class T>
struct FieldDef : FieldInfo {
  using Target = T;
  using Reader = void (*)(const FieldValue& value, T& target);

  constexpr FieldDef(const FieldInfo& info, Reader reader = nullptr)
      : FieldInfo(info), read(reader) {}

  Reader read;  // none: it is enough to check the value
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
  list.insert(list.end(), fields.begin(), fields.end());
}

// Those that `list` has no field of the same name for.
void append_missing_fields(const FieldList& others, FieldList& list);

template <class T>
FieldList list_fields(FieldTable<T> fields) {
  return {fields.begin(), fields.end()};
}

// Fields that clients of OpenAI's API and of its relatives send, and that change no answer: a table
// says of each, at its level, why it is accepted, or that it is refused.
enum class FieldLevel : uint8_t {
  request,  // any
  chat,     // a chat's request
  stream_options,
  message,
  part,  // of a content
  tool,
  tool_function,
  call,  // of a tool, in an assistant's message
  call_function,
  // Of Anthropic's API.
  messages,  // a request
  block,     // of a content
  custom_tool,
};

struct ClientField {};

// The table's rows of a level.
FieldTable<ClientField> client_fields(FieldLevel level);

// Checks the members that the rows of the level have.
void read_client_fields(FieldLevel level, RequestReader& reader);

void append_client_fields(FieldLevel level, FieldList& list);

// The object without members that are accepted and ignored at the level: no template shows them.
Json without_client_fields(const Json& object, FieldLevel level);

template <class T, size_t num_fields>
FieldTable<T> table_of(const FieldDef<T> (&fields)[num_fields]) {
  return fields;
}
template <const auto& fields>
using TargetOf = typename std::remove_cvref_t<decltype(table_of(fields)[0])>::Target;

// Of an object whose members are one table's, and the client's fields of a level: its type is
// object_type(fields_of<kTable>), and its readers are read_members<kTable> and read_object<kTable>.
template <const auto& fields, FieldLevel... level>
FieldList fields_of() {
  FieldList list = list_fields(table_of(fields));
  (append_client_fields(level, list), ...);
  return list;
}
template <const auto& fields, FieldLevel... level>
void read_members(const FieldValue& value, TargetOf<fields>& target) {
  RequestReader reader(value);
  reader.read(table_of(fields), target);
  (read_client_fields(level, reader), ...);
  reader.finish();
}
template <const auto& fields, FieldLevel... level>
TargetOf<fields> read_object(const FieldValue& value) {
  TargetOf<fields> object;
  read_members<fields, level...>(value, object);
  return object;
}

// Of an array of such objects.
template <const auto& fields, FieldLevel... level>
std::vector<TargetOf<fields>> read_objects(const FieldValue& value) {
  std::vector<TargetOf<fields>> objects;
  for (const FieldValue& item : value.items()) {
    objects.push_back(read_object<fields, level...>(item));
  }
  return objects;
}

// Of a body with no other fields.
template <const auto& fields>
TargetOf<fields> read_body(const Json& body, const RequestTerms& terms) {
  TargetOf<fields> request;
  RequestReader reader(body, terms);
  reader.read(table_of(fields), request);
  reader.finish();
  return request;
}

// The rows of a table. field() is optional and required() must be there; ignored() can't change an
// answer, and refused() isn't offered here. A row's reader, its last part, may be a lambda; without
// one the value is only checked.
constexpr FieldInfo field(std::string_view name, const FieldType& type, std::string_view help,
                          const FieldNotes& notes = {}) {
  return {notes, name, type, help};
}
template <class Read>
constexpr auto field(std::string_view name, const FieldType& type, std::string_view help,
                     const FieldNotes& notes, Read read) {
  return FieldDef(field(name, type, help, notes), +read);
}
template <class Read>
constexpr auto field(std::string_view name, const FieldType& type, std::string_view help,
                     Read read) {
  return field(name, type, help, {}, read);
}
template <class Row>
constexpr Row required(Row row) {
  row.is_required = true;
  return row;
}
template <class... Rest>
constexpr auto required(std::string_view name, const FieldType& type, const Rest&... rest) {
  return required(field(name, type, rest...));
}
constexpr FieldInfo ignored(std::string_view name, const FieldType& type, std::string_view help,
                            const FieldNotes& notes = {}) {
  return {notes, name, type, help, FieldUse::accepted};
}
constexpr FieldInfo ignored(std::string_view name, std::string_view help) {
  return ignored(name, kAnyValue, help);
}
constexpr FieldInfo refused(std::string_view name, std::string_view help = {}) {
  return {{}, name, kAnyValue, help, FieldUse::refused};
}
// An object whose members, of another table, become part of the same target.
template <const auto& fields, FieldLevel... level>
constexpr auto object(std::string_view name, std::string_view help, const FieldNotes& notes = {}) {
  return FieldDef<TargetOf<fields>>(
      field(name, object_type(fields_of<fields, level...>), help, notes),
      read_members<fields, level...>);
}

template <class T, class Value>
T owner_of(Value T::*member);
// A reader that stores the value in a member, or in a member of a member: a text, texts, a boolean,
// a number, token ids, a Json, the FieldValue itself, or an optional one.
template <auto first, auto... rest>
void store(const FieldValue& value, decltype(owner_of(first))& target) {
  value.copy_to(((target.*first).*....*rest));
}
// Of a target that inherits the member.
template <class T, auto first, auto... rest>
void store(const FieldValue& value, T& target) {
  value.copy_to(((target.*first).*....*rest));
}

}  // namespace paceline
