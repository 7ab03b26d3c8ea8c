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

// What a schema says of the arguments together, besides `properties` and `required`.
constexpr std::array<std::string_view, 17> kOfArguments{"anyOf",
                                                        "oneOf",
                                                        "not",
                                                        "if",
                                                        "enum",
                                                        "const",
                                                        "dependencies",
                                                        "propertyNames",
                                                        "dependentRequired",
                                                        "minProperties",
                                                        "maxProperties",
                                                        "dependentSchemas",
                                                        "$dynamicRef",
                                                        "$recursiveRef",
                                                        "patternProperties",
                                                        "extends",
                                                        "unevaluatedProperties"};

// What values in a notation that isn't JSON don't obey.
constexpr std::array<std::string_view, 22> kOfValues{"pattern",
                                                     "format",
                                                     "minLength",
                                                     "maxLength",
                                                     "minItems",
                                                     "maxItems",
                                                     "uniqueItems",
                                                     "contains",
                                                     "prefixItems",
                                                     "additionalItems",
                                                     "unevaluatedItems",
                                                     "not",
                                                     "if",
                                                     "dependencies",
                                                     "propertyNames",
                                                     "dependentRequired",
                                                     "dependentSchemas",
                                                     "minProperties",
                                                     "maxProperties",
                                                     "patternProperties",
                                                     "$dynamicRef",
                                                     "unevaluatedProperties"};

class StrictCheck {
 public:
  StrictCheck(const ArgumentsFormat& format, const Json& root) : format_(format), root_(root) {}

  // Of the schema of all arguments and those that hold together with it. `where` names it: "#".
  void check_arguments(const Json& schema, const std::string& where);

 private:
  // Of a value's schema and all schemas in it.
  void check_value(const Json& schema, const std::string& where);
  void refuse(const Json& schema, Keywords keywords, const std::string& where,
              std::string_view reason);
  // The kinds of values that aren't held to all of their schema.
  JsonKinds loose_kinds() const;
  const Json* target_of(const Json& schema) const;

  const ArgumentsFormat& format_;
  const Json& root_;
  std::set<const Json*> seen_;
};

void StrictCheck::refuse(const Json& schema, Keywords keywords, const std::string& where,
                         std::string_view reason) {
  for (const auto& [keyword, value] : *schema.object()) {
    const bool is_schema =
        keyword == "additionalProperties" && value.is_object() && !value.object()->empty();
    if (!is_schema && std::ranges::find(keywords, keyword) == keywords.end()) continue;
    throw Error(
        ErrorCode::unsupported,
        fmt::format("schema: {}: \"{}\" can't be enforced where the chat template writes {}; "
                    "leave it out, or \"strict\"",
                    where, keyword, reason));
  }
}

JsonKinds StrictCheck::loose_kinds() const {
  const bool has_python = format_.string_escapes == StringNotation::Escapes::python;
  const JsonKinds strings = has_python ? kStringKind : JsonKinds{0};
  return format_.nested_is_json() ? strings
                                  : static_cast<JsonKinds>(strings | kArrayKind | kObjectKind);
}

const Json* StrictCheck::target_of(const Json& schema) const {
  const Json* reference = schema.find("$ref");
  if (reference == nullptr || !reference->is_string()) return nullptr;
  return resolve_pointer(*reference->string(), root_);
}

void StrictCheck::check_arguments(const Json& schema, const std::string& where) {
  if (!schema.is_object() || !seen_.insert(&schema).second) return;
  refuse(schema, kOfArguments, where, "arguments one by one");
  if (const Json* target = target_of(schema)) {
    check_arguments(*target, *schema.find("$ref")->string());
  }
  const Json* properties = schema.find("properties");
  if (properties != nullptr && properties->is_object()) {
    for (const auto& [name, one] : *properties->object()) {
      if ((kinds_of_schema(one, root_) & loose_kinds()) == 0) continue;
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
  refuse(schema, kOfValues, where, "values in a notation that isn't JSON");
  if (const Json* target = target_of(schema)) {
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
  StrictCheck(format, root).check_arguments(root, "#");
}

}  // namespace paceline
