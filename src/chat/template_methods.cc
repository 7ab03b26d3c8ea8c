#include "chat/template_methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "chat/template_compare.h"
#include "chat/template_convert.h"

namespace paceline {
namespace {

constexpr std::array<std::string_view, 11> kListMethods = {"append", "clear",   "copy",   "count",
                                                           "extend", "index",   "insert", "pop",
                                                           "remove", "reverse", "sort"};
constexpr std::array<std::string_view, 11> kDictMethods = {
    "clear", "copy",    "fromkeys",   "get",    "items", "keys",
    "pop",   "popitem", "setdefault", "update", "values"};

template <size_t kSize>
bool is_in(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

[[noreturn]] void refuse(const TemplateValue& self, std::string_view name) {
  throw TemplateError(
      "access to attribute '{}' of '{}' object is unsafe: templates can't change values", name,
      self.type_name());
}

TemplateValue call_list_method(TemplateRuntime& runtime, const TemplateValue& self,
                               std::string_view name, ArgumentReader arguments) {
  const TemplateValues& items = self.items();
  runtime.step(items.size() / 16);
  if (name == "copy") {
    arguments.finish();
    return self;
  }
  const bool counts = name == "count";
  if (!counts && name != "index") refuse(self, name);
  const TemplateValue wanted = arguments.required("value");
  arguments.finish();
  const auto is_wanted = [&](const TemplateValue& item) { return equal(item, wanted); };
  if (counts) return static_cast<int64_t>(std::count_if(items.begin(), items.end(), is_wanted));
  const auto found = std::find_if(items.begin(), items.end(), is_wanted);
  if (found == items.end()) throw TemplateError("list.index(x): x not in list");
  return static_cast<int64_t>(found - items.begin());
}

TemplateValue call_dict_method(TemplateRuntime& runtime, const TemplateValue& self,
                               std::string_view name, ArgumentReader arguments) {
  const auto& members = self.members().members();
  if (name == "get") {
    const TemplateValue key = arguments.required("key");
    const TemplateValue otherwise = arguments.optional("default").value_or(TemplateValue());
    arguments.finish();
    if (!is_hashable(key)) throw TemplateError("unhashable type: '{}'", key.type_name());
    const TemplateValue* found = self.members().find(key);
    return found == nullptr ? otherwise : *found;
  }
  TemplateValues all;
  runtime.charge_items(3 * members.size());
  for (const auto& [key, value] : members) {
    if (name == "items") {
      all.push_back(TemplateValue::tuple({key, value}));
    } else {
      all.push_back(name == "keys" ? key : value);
    }
  }
  arguments.finish();
  if (name == "items" || name == "keys" || name == "values")
    return TemplateValue::list(std::move(all));
  if (name == "copy") return self;
  refuse(self, name);
}

}  // namespace

bool has_method(const TemplateValue& self, std::string_view name) {
  if (self.is_string()) return is_string_method(name);
  if (self.is_mapping()) return is_in(kDictMethods, name);
  if (self.is_tuple()) return name == "count" || name == "index";
  return self.is_sequence() && is_in(kListMethods, name);
}

TemplateValue call_method(TemplateRuntime& runtime, const TemplateValue& self,
                          std::string_view name, TemplateArguments arguments) {
  runtime.step();
  if (self.is_string()) return call_string_method(runtime, self, name, std::move(arguments));
  ArgumentReader reader(name, std::move(arguments));
  if (self.is_mapping()) return call_dict_method(runtime, self, name, std::move(reader));
  return call_list_method(runtime, self, name, std::move(reader));
}

}  // namespace paceline
