#include "grammar/schema_spacing.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/json_cursor.h"

namespace paceline {
namespace {

bool is_separator(const std::string& text, char mark) {
  const auto is_other = [&](char c) { return c != ' ' && c != mark; };
  return std::count(text.begin(), text.end(), mark) == 1 &&
         std::none_of(text.begin(), text.end(), is_other);
}

}  // namespace

std::vector<std::string> read_json_guidance(const Json& guidance, SchemaRigor& rigor,
                                            JsonSpacing& spacing) {
  if (!guidance.is_object()) return {found_instead(shown(guidance), "an object of options")};
  std::vector<std::string> problems;
  const auto expect = [&](bool is_right, std::string_view name, const Json& value,
                          std::string_view expected) {
    if (!is_right) {
      problems.push_back(fmt::format("{}: {}", name, found_instead(shown(value), expected)));
    }
    return is_right;
  };
  for (const auto& [name, value] : *guidance.object()) {
    if (name == "whitespace_flexible") {
      if (expect(value.is_bool(), name, value, "true or false")) {
        spacing.is_flexible = *value.boolean();
      }
    } else if (name == "item_separator" || name == "key_separator") {
      const bool is_item = name == "item_separator";
      const bool is_right = value.is_string() && is_separator(*value.string(), is_item ? ',' : ':');
      if (expect(is_right, name, value, is_item ? "a comma and spaces" : "a colon and spaces")) {
        (is_item ? spacing.item_separator : spacing.key_separator) = *value.string();
      }
    } else if (name == "lenient") {
      if (!expect(value.is_bool(), name, value, "true or false")) continue;
      if (*value.boolean() && rigor == SchemaRigor::exact) rigor = SchemaRigor::best_effort;
    } else if (name != "coerce_one_of") {  // "oneOf" is enforced as it stands
      problems.push_back(
          fmt::format("{} isn't an option here; whitespace_flexible, item_separator, "
                      "key_separator, lenient and coerce_one_of are",
                      name));
    }
  }
  return problems;
}

}  // namespace paceline
