#include "tools/strict_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace paceline {
namespace {

using Keywords = std::span<const std::string_view>;

// Rules of objects besides `properties` and `required`, which are enforced nowhere but in JSON.
constexpr std::array<std::string_view, 12> kObjectRules{"not",
                                                        "if",
                                                        "dependencies",
                                                        "dependentRequired",
                                                        "dependentSchemas",
                                                        "minProperties",
                                                        "maxProperties",
                                                        "propertyNames",
                                                        "patternProperties",
                                                        "$dynamicRef",
                                                        "$recursiveRef",
                                                        "unevaluatedProperties"};

// What else isn't enforced of the arguments together.
constexpr std::array<std::string_view, 4> kArgumentRules{"anyOf", "oneOf", "enum", "const"};

// What else isn't enforced of values in a notation that isn't JSON.
constexpr std::array<std::string_view, 11> kValueRules{
    "pattern",     "format",   "minLength",   "maxLength",       "minItems",        "maxItems",
    "uniqueItems", "contains", "prefixItems", "additionalItems", "unevaluatedItems"};

class StrictCheck {
 public:
  StrictCheck(const ArgumentsFormat& format, const Tool& tool, const Json& root)
      : format_(format), tool_(tool), root_(root) {}

  // Checks the schema of all arguments, its $ref and the schemas of its allOf. `where` is its place
  // in the tool's schema: "#".
  void check_arguments(const Json& schema, const std::string& where);

 private:
  // Checks the schema of a value, and all schemas in it.
  void check_value(const Json& schema, const std::string& where);
  void refuse(const Json& schema, Keywords keywords, const std::string& where,
              std::string_view reason);
  // The kinds of values that aren't held to all of their schema.
  JsonKinds loose_kinds() const;

  const ArgumentsFormat& format_;
  const Tool& tool_;
  const Json& root_;
  std::set<const Json*> seen_;
};

void StrictCheck::refuse(const Json& schema, Keywords keywords, const std::string& where,
                         std::string_view reason) {
  const auto is_among = [](Keywords some, std::string_view keyword) {
    return std::ranges::find(some, keyword) != some.end();
  };
  for (const auto& [keyword, value] : *schema.object()) {
    const bool is_schema =
        keyword == "additionalProperties" && value.is_object() && !value.object()->empty();
    const bool is_unknown = keyword == "$ref" && reference_target(schema, root_) == nullptr;
    if (!is_schema && !is_unknown && !is_among(kObjectRules, keyword) &&
        !is_among(keywords, keyword)) {
      continue;
    }
    throw Error(
        ErrorCode::unsupported,
        fmt::format("schema: {}: \"{}\" can't be enforced where the chat template writes {}; leave "
                    "it out, or \"strict\"",
                    where, keyword, reason));
  }
}

JsonKinds StrictCheck::loose_kinds() const {
  const bool has_python = format_.string_escapes == StringNotation::Escapes::python;
  const JsonKinds strings = has_python ? kStringKind : JsonKinds{0};
  return format_.nested_is_json() ? strings
                                  : static_cast<JsonKinds>(strings | kArrayKind | kObjectKind);
}

void StrictCheck::check_arguments(const Json& schema, const std::string& where) {
  if (!schema.is_object() || !seen_.insert(&schema).second) return;
  refuse(schema, kArgumentRules, where, "arguments one by one");
  if (const Json* target = reference_target(schema, root_)) {
    check_arguments(*target, *schema.find("$ref")->string());
  }
  const Json* properties = schema.find("properties");
  if (properties != nullptr && properties->is_object()) {
    for (const auto& [name, one] : *properties->object()) {
      const ToolParameter* const parameter = tool_.find(name);
      if (parameter != nullptr && (parameter->kinds & loose_kinds()) == 0) continue;
      check_value(one, fmt::format("{}/properties/{}", where, name));
    }
  }
  const Json* all = schema.find("allOf");
  if (all == nullptr || !all->is_array()) return;
  for (size_t i = 0; i < all->array()->size(); ++i) {
    check_arguments((*all->array())[i], fmt::format("{}/allOf/{}", where, i));
  }
}

void StrictCheck::check_value(const Json& schema, const std::string& where) {
  if (!schema.is_object() || !seen_.insert(&schema).second) return;
  refuse(schema, kValueRules, where, "values in a notation that isn't JSON");
  if (const Json* target = reference_target(schema, root_)) {
    check_value(*target, *schema.find("$ref")->string());
  }
  for (const auto& [keyword, value] : *schema.object()) {
    const std::string inside = fmt::format("{}/{}", where, keyword);
    if (keyword == "items") check_value(value, inside);
    if (keyword == "properties" && value.is_object()) {
      for (const auto& [name, one] : *value.object()) check_value(one, inside + "/" + name);
    }
    const bool is_list = keyword == "anyOf" || keyword == "oneOf" || keyword == "allOf";
    if (!is_list || !value.is_array()) continue;
    for (size_t i = 0; i < value.array()->size(); ++i) {
      check_value((*value.array())[i], fmt::format("{}/{}", inside, i));
    }
  }
}

}  // namespace

void check_strict_parameters(const ArgumentsFormat& format, const Tool& tool) {
  const Json root = parse_json(tool.schema(), "schema");
  StrictCheck(format, tool, root).check_arguments(root, "#");
}

}  // namespace paceline
