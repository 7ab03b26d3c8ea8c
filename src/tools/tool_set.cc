#include "tools/tool_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/json_cursor.h"
#include "base/json_writer.h"
#include "tools/schema_parts.h"

namespace paceline {
namespace {

constexpr int kMaxSchemaDepth = 32;
constexpr std::string_view kNoParameters =
    R"({"type":"object","properties":{},"additionalProperties":false})";

JsonKinds kinds_of_type(const Json& type) {
  if (const Json::Array* types = type.array()) {
    JsonKinds kinds = 0;
    for (const Json& one : *types) kinds |= kinds_of_type(one);
    return kinds;
  }
  const std::string* name = type.string();
  for (const auto& [known, kinds] : kJsonTypes) {
    if (name != nullptr && *name == known) return kinds;
  }
  return kAllKinds;
}

// The kinds of the schemas of one document, each found once: schemas may name each other in more
// ways than can be followed.
class SchemaKinds {
 public:
  explicit SchemaKinds(const Json& root) : root_(root) {}

  JsonKinds of(const Json& schema, int depth = 0);

 private:
  JsonKinds found(const Json& schema, int depth);

  const Json& root_;
  std::unordered_map<const Json*, JsonKinds> known_;
};

JsonKinds SchemaKinds::of(const Json& schema, int depth) {
  if (schema.boolean() == false) return 0;
  if (!schema.is_object() || depth > kMaxSchemaDepth) return kAllKinds;
  const auto [known, is_new] = known_.try_emplace(&schema, kAllKinds);
  if (!is_new) return known->second;  // of one that is being looked at: any
  const JsonKinds kinds = found(schema, depth);
  known_[&schema] = kinds;
  return kinds;
}

JsonKinds SchemaKinds::found(const Json& schema, int depth) {
  JsonKinds kinds = kAllKinds;
  if (const Json* type = schema.find("type")) kinds &= kinds_of_type(*type);
  if (const Json* value = schema.find("const")) kinds &= kind_of_value(*value);
  const auto any_of = [&](const char* keyword, bool are_values) {
    const Json* list = schema.find(keyword);
    if (list == nullptr || !list->is_array()) return;
    JsonKinds some = 0;
    for (const Json& one : *list->array()) {
      some |= are_values ? kind_of_value(one) : of(one, depth + 1);
    }
    kinds &= some;
  };
  any_of("enum", true);
  any_of("anyOf", false);
  any_of("oneOf", false);
  const Json* all = schema.find("allOf");
  if (all != nullptr && all->is_array()) {
    for (const Json& one : *all->array()) kinds &= of(one, depth + 1);
  }
  if (const Json* target = reference_target(schema, root_)) kinds &= of(*target, depth + 1);
  return kinds;
}

// "~1" and "~0" as the characters that they stand for in pointers, and "%2F" in addresses.
std::string unescaped_token(std::string_view token) {
  std::string text;
  for (size_t i = 0; i < token.size(); ++i) {
    const std::string_view rest = token.substr(i);
    if (rest.starts_with("~0") || rest.starts_with("~1")) {
      text += rest[1] == '0' ? '~' : '/';
      ++i;
    } else if (uint8_t byte = 0;
               rest.size() >= 3 && rest[0] == '%' &&
               std::from_chars(rest.data() + 1, rest.data() + 3, byte, 16).ptr == rest.data() + 3) {
      text += static_cast<char>(byte);
      i += 2;
    } else {
      text += token[i];
    }
  }
  return text;
}

}  // namespace

const Json* resolve_pointer(std::string_view reference, const Json& root) {
  if (!reference.starts_with('#')) return nullptr;
  reference.remove_prefix(1);
  const Json* found = &root;
  while (found != nullptr && reference.starts_with('/')) {
    reference.remove_prefix(1);
    const size_t end = std::min(reference.find('/'), reference.size());
    found = found->find(unescaped_token(reference.substr(0, end)));
    reference.remove_prefix(end);
  }
  return reference.empty() ? found : nullptr;
}

const Json* reference_target(const Json& schema, const Json& root) {
  const Json* reference = schema.find("$ref");
  if (reference == nullptr || !reference->is_string()) return nullptr;
  return resolve_pointer(*reference->string(), root);
}

std::set<std::string> required_of(const Json& schema) {
  std::set<std::string> names;
  const Json* required = schema.find("required");
  if (required == nullptr || !required->is_array()) return names;
  for (const Json& name : *required->array()) {
    if (name.is_string()) names.insert(*name.string());
  }
  return names;
}

JsonKinds kinds_of_schema(const Json& schema, const Json& root) {
  return SchemaKinds(root).of(schema);
}

JsonKinds kind_of_value(const Json& value) {
  if (value.is_null()) return kNullKind;
  if (value.is_bool()) return *value.boolean() ? kTrueKind : kFalseKind;
  if (value.is_number()) return kNumberKind;
  if (value.is_string()) return kStringKind;
  return value.is_array() ? kArrayKind : kObjectKind;
}

namespace {

// Collects the parameters of a schema, of its $ref and of the schemas of its allOf, in the order of
// the text.
class ParameterCollector {
 public:
  explicit ParameterCollector(const Json& root) : root_(root), kinds_(root) {}

  // `reference` names the schema.
  void add(const Json& schema, const std::string& reference, int depth = 0);
  std::vector<ToolParameter> parameters() &&;
  bool takes_others() const { return takes_others_; }

 private:
  void add_own(const Json::Object& properties, const std::string& reference);

  const Json& root_;
  SchemaKinds kinds_;
  std::set<const Json*> seen_;
  std::vector<ToolParameter> parameters_;
  std::map<std::string_view, size_t> by_name_;  // of the schemas' names
  std::set<std::string> required_;
  bool takes_others_ = true;
};

void ParameterCollector::add(const Json& schema, const std::string& reference, int depth) {
  if (!schema.is_object() || depth > kMaxSchemaDepth || !seen_.insert(&schema).second) return;
  bool has_own = false;
  for (const auto& [keyword, value] : *schema.object()) {
    if (keyword == "$ref") {
      const Json* target = reference_target(schema, root_);
      if (target != nullptr) add(*target, *value.string(), depth + 1);
    } else if (keyword == "allOf" && value.is_array()) {
      for (size_t i = 0; i < value.array()->size(); ++i) {
        add((*value.array())[i], fmt::format("{}/allOf/{}", reference, i), depth + 1);
      }
    } else if (keyword == "properties" && value.is_object()) {
      has_own = !value.object()->empty();
      add_own(*value.object(), reference);
    }
  }
  required_.merge(required_of(schema));
  const Json* others = schema.find("additionalProperties");
  takes_others_ &= others != nullptr ? others->boolean() != false : !has_own;
}

void ParameterCollector::add_own(const Json::Object& properties, const std::string& reference) {
  for (size_t i = 0; i < properties.size(); ++i) {
    const auto& [name, schema] = properties[i];
    const auto [known, is_new] = by_name_.try_emplace(name, parameters_.size());
    if (is_new) parameters_.push_back({.name = name, .json = &schema});
    ToolParameter& parameter = parameters_[known->second];
    parameter.places.push_back({reference, i});
    parameter.kinds &= kinds_.of(schema);
  }
}

std::vector<ToolParameter> ParameterCollector::parameters() && {
  for (ToolParameter& one : parameters_) one.is_required = required_.contains(one.name);
  return std::move(parameters_);
}

}  // namespace

Tool::Tool(ToolSpec spec) : spec_(std::move(spec)) {
  if (spec_.parameters.empty()) spec_.parameters = kNoParameters;
  const std::string where = fmt::format("tool {}: parameters", spec_.name);
  root_ = parse_json(spec_.parameters, where);
  const JsonCursor root(root_, where);
  root.object();
  if ((kinds_of_schema(root_, root_) & kObjectKind) == 0) {
    root.fail("the schema allows no object, expected one of type object");
  }
  ParameterCollector collector(root_);
  collector.add(root_, "#");
  parameters_ = std::move(collector).parameters();
  takes_others_ = collector.takes_others();
}

const ToolParameter* Tool::find(std::string_view parameter) const {
  const auto found = std::find_if(parameters_.begin(), parameters_.end(),
                                  [&](const auto& one) { return one.name == parameter; });
  return found == parameters_.end() ? nullptr : &*found;
}

ToolSet::ToolSet(std::vector<ToolSpec> tools) {
  for (ToolSpec& spec : tools) {
    if (spec.name.empty()) throw Error(ErrorCode::invalid, "a tool has an empty name");
    if (find(spec.name) != nullptr) {
      throw Error(ErrorCode::invalid, fmt::format("two tools have the name {}", spec.name));
    }
    tools_.emplace_back(std::move(spec));
  }
}

const Tool* ToolSet::find(std::string_view name) const {
  const auto found = std::find_if(tools_.begin(), tools_.end(),
                                  [&](const Tool& tool) { return tool.name() == name; });
  return found == tools_.end() ? nullptr : &*found;
}

}  // namespace paceline
