// RequestReader takes an object's members by tables that say what becomes of each field.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "protocol/field_value.h"

namespace paceline {

enum class FieldUse : uint8_t {
  implemented,
  accepted,  // can't change the answer: checked and then left alone
  refused,   // part of the API, not offered here
};

// What documentation needs to know of a field.
struct FieldInfo {
  std::string_view name;
  FieldUse use = FieldUse::implemented;
  std::string_view help = {};  // one sentence; of a refused field what to do instead, or nothing
};

template <class T>
struct FieldDef {
  std::string_view name;
  FieldUse use = FieldUse::implemented;
  std::string_view help = {};
  void (*read)(const FieldValue& value, T& target) = nullptr;  // none: any value will do
};

template <class T>
using FieldTable = std::span<const FieldDef<T>>;

// A null counts as absent.
class RequestReader {
 public:
  // `path` is the object's own, or empty for the body of a request. Throws RequestError when it is
  // no object.
  explicit RequestReader(const FieldValue& object);
  explicit RequestReader(const Json& body) : RequestReader(FieldValue(body, "")) {}

  // Reads the members that the table has into `target`. Throws RequestError for a refused one.
  template <class T>
  void read(FieldTable<T> fields, T& target) {
    for (const FieldDef<T>& field : fields) {
      const Json* value = take(field.name);
      if (value == nullptr) continue;
      if (field.use == FieldUse::refused) refuse_field(field.name, field.help);
      if (field.read != nullptr) field.read(FieldValue(*value, path_of(field.name)), target);
    }
  }

  // Throws RequestError, with a suggestion, for a member that no table read so far has.
  void finish() const;
  // Throws RequestError for a member that must be there.
  void require(std::string_view name) const;

 private:
  const Json* take(std::string_view name);
  std::string path_of(std::string_view name) const;
  [[noreturn]] void refuse_field(std::string_view name, std::string_view help) const;

  const Json& object_;
  std::string path_;
  std::vector<std::string_view> known_;
};

// The table as documentation sees it, behind `list`.
template <class T>
void append_fields(FieldTable<T> fields, std::vector<FieldInfo>& list) {
  for (const FieldDef<T>& field : fields) list.push_back({field.name, field.use, field.help});
}

}  // namespace paceline
