#include "grammar/schema_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json_cursor.h"
#include "grammar/json_format.h"
#include "grammar/pattern.h"

namespace paceline {
namespace {

constexpr size_t kMaxSchemaBytes = 256 << 10;
constexpr size_t kMaxSchemaNodes = 200'000;

std::string_view checked_schema_text(std::string_view text) {
  if (text.size() > kMaxSchemaBytes) {
    throw Error(ErrorCode::exhausted,
                fmt::format("the schema has {} bytes, more than {}", text.size(), kMaxSchemaBytes));
  }
  return text;
}

std::optional<SchemaDraft> draft_of_name(std::string_view name) {
  static constexpr std::pair<std::string_view, SchemaDraft> kDrafts[] = {
      {"json-schema.org/draft-04/", SchemaDraft::draft4},
      {"json-schema.org/draft-06/", SchemaDraft::draft6},
      {"json-schema.org/draft-07/", SchemaDraft::draft7},
      {"json-schema.org/draft/2019-09/", SchemaDraft::draft2019},
      {"json-schema.org/draft/2020-12/", SchemaDraft::draft2020}};
  for (const auto& [part, draft] : kDrafts) {
    if (name.find(part) != name.npos) return draft;
  }
  return std::nullopt;
}

bool ignores_siblings_of_ref(SchemaDraft draft) { return draft <= SchemaDraft::draft7; }

const std::string* text_of(const Json& schema, std::string_view keyword) {
  const Json* value = schema.find(keyword);
  return value == nullptr ? nullptr : value->string();
}

// Schemas in the values of these keywords: one, a list of them, or an object of them.
constexpr std::array<std::string_view, 11> kSchemaKeywords = {"items",
                                                              "additionalItems",
                                                              "additionalProperties",
                                                              "not",
                                                              "if",
                                                              "then",
                                                              "else",
                                                              "propertyNames",
                                                              "contains",
                                                              "unevaluatedItems",
                                                              "unevaluatedProperties"};
constexpr std::array<std::string_view, 5> kSchemaListKeywords = {"allOf", "anyOf", "oneOf",
                                                                 "prefixItems", "items"};
constexpr std::array<std::string_view, 6> kSchemaMapKeywords = {
    "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"};

template <size_t N>
bool is_among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string unescaped_pointer_token(std::string_view token) {
  std::string text;
  for (size_t i = 0; i < token.size(); ++i) {
    if (token[i] == '~' && i + 1 < token.size() && (token[i + 1] == '0' || token[i + 1] == '1')) {
      text += token[++i] == '0' ? '~' : '/';
    } else {
      text += token[i];
    }
  }
  return text;
}

const Json* step_of_pointer(const Json& at, const std::string& token) {
  if (at.is_object()) return at.find(token);
  if (!at.is_array() || token.empty() || token.size() > 9) return nullptr;
  size_t index = 0;
  for (const char digit : token) {
    if (digit < '0' || digit > '9') return nullptr;
    index = index * 10 + static_cast<size_t>(digit - '0');
  }
  return index < at.array()->size() ? &(*at.array())[index] : nullptr;
}

std::string pointer_token(std::string_view key) {
  std::string token;
  for (const char c : key) {
    if (c == '~') {
      token += "~0";
    } else if (c == '/') {
      token += "~1";
    } else {
      token += c;
    }
  }
  return token;
}

// The pointer to `wanted`, a node at `at` or below it.
bool find_pointer(const Json& at, const Json& wanted, std::string& pointer) {
  if (&at == &wanted) return true;
  const size_t length = pointer.size();
  const auto is_below = [&](const Json& child, const std::string& token) {
    pointer += '/' + token;
    if (find_pointer(child, wanted, pointer)) return true;
    pointer.resize(length);
    return false;
  };
  if (const Json::Object* object = at.object()) {
    return std::any_of(object->begin(), object->end(), [&](const Json::Member& member) {
      return is_below(member.second, pointer_token(member.first));
    });
  }
  const Json::Array* array = at.array();
  for (size_t i = 0; array != nullptr && i < array->size(); ++i) {
    if (is_below((*array)[i], std::to_string(i))) return true;
  }
  return false;
}

}  // namespace

SchemaDocument::SchemaDocument(std::string_view text, SchemaRigor rigor, GrammarBuilder& builder,
                               TextForm form)
    : document_(parse_json(checked_schema_text(text), "schema")),
      rigor_(rigor),
      builder_(builder),
      form_(form) {
  read_guidance();
  resources_.push_back({"", &document_, read_draft()});
  resource_of_root_[&document_] = 0;
  find_resources(document_, 0);
  roots_.try_emplace("", &document_, 0);
  anything_ = add({});
}

SchemaDraft SchemaDocument::read_draft() {
  const std::string* name = text_of(document_, "$schema");
  if (name == nullptr) return SchemaDraft::unstated;
  const std::optional<SchemaDraft> draft = draft_of_name(*name);
  if (!draft && name->find("json-schema.org/draft-0") != name->npos) {
    leave_out(document_, "$schema",
              fmt::format("{} isn't supported; drafts 4, 6, 7, 2019-09 and 2020-12 are",
                          shown_text(*name)));
  }
  return draft.value_or(SchemaDraft::unstated);
}

// llguidance's options.
void SchemaDocument::read_guidance() {
  const Json* guidance = document_.find("x-guidance");
  if (guidance == nullptr) return;
  for (const std::string& problem : read_json_guidance(*guidance, rigor_, spacing_)) {
    leave_out(document_, "x-guidance", problem);
  }
}

// Registers the addresses and anchors of a schema and of those in it.
void SchemaDocument::find_resources(const Json& schema, uint32_t resource_index) {
  if (!schema.is_object()) return;
  const SchemaDraft draft = resources_[resource_index].draft;
  const bool is_only_ref = ignores_siblings_of_ref(draft) && text_of(schema, "$ref") != nullptr;
  const std::string* id = text_of(schema, "$id");
  const bool is_old_id =
      id == nullptr && (draft == SchemaDraft::draft4 || draft == SchemaDraft::unstated);
  if (is_old_id) id = text_of(schema, "id");
  if (id != nullptr && !is_only_ref) {
    const SchemaReference at = resolve_schema_reference(resources_[resource_index].uri, *id);
    if (!at.fragment.empty()) {
      anchors_.try_emplace(at.resource + "#" + at.fragment, &schema);
    } else if (is_old_id && draft == SchemaDraft::unstated && &schema != &document_) {
      roots_.try_emplace(at.resource, &schema, resource_index);  // an address, but not a base
    } else {
      if (&schema == &document_) {
        resources_[0].uri = at.resource;
      } else {
        resource_index = static_cast<uint32_t>(resources_.size());
        resources_.push_back({at.resource, &schema, draft});
        resource_of_root_[&schema] = resource_index;
        const std::string* dialect = text_of(schema, "$schema");
        const auto stated = dialect == nullptr ? std::nullopt : draft_of_name(*dialect);
        if (stated) resources_.back().draft = *stated;
      }
      roots_.try_emplace(at.resource, &schema, resource_index);
    }
  }
  for (const std::string_view keyword : {"$anchor", "$dynamicAnchor"}) {
    if (const std::string* name = text_of(schema, keyword)) {
      anchors_.try_emplace(resources_[resource_index].uri + "#" + *name, &schema);
    }
  }
  find_resources_below(schema, resource_index);
}

void SchemaDocument::find_resources_below(const Json& schema, uint32_t resource_index) {
  for (const auto& [keyword, value] : *schema.object()) {
    if (value.is_object() && is_among(kSchemaKeywords, keyword)) {
      find_resources(value, resource_index);
    } else if (value.is_array() && is_among(kSchemaListKeywords, keyword)) {
      for (const Json& item : *value.array()) find_resources(item, resource_index);
    } else if (value.is_object() && is_among(kSchemaMapKeywords, keyword)) {
      for (const auto& member : *value.object()) find_resources(member.second, resource_index);
    }
  }
}

SchemaLiteral SchemaDocument::root() { return literal_at(document_, 0); }

SchemaLiteral SchemaDocument::property(std::string_view owner, size_t index) {
  const auto target = find_target(resolve_schema_reference(resources_[0].uri, owner), 0);
  const Json* properties = target ? target->first->find("properties") : nullptr;
  if (properties == nullptr || !properties->is_object() || index >= properties->object()->size()) {
    fail(ErrorCode::invalid, document_, "$ref",
         fmt::format("{} has no properties", shown_text(owner)));
  }
  return literal_at((*properties->object())[index].second, target->second);
}

SchemaLiteral SchemaDocument::add(SchemaNode made) {
  if (nodes_.size() >= kMaxSchemaNodes) {
    throw Error(ErrorCode::exhausted,
                fmt::format("the schema is too complex: more than {} nodes", kMaxSchemaNodes));
  }
  made.is_read = true;
  if (made.json == nullptr) made.json = &document_;
  nodes_.push_back(std::move(made));
  return literal_of(SchemaNodeId{static_cast<uint32_t>(nodes_.size() - 1)});
}

SchemaLiteral SchemaDocument::literal_at(const Json& schema, uint32_t resource_index) {
  if (const auto value = schema.boolean()) return *value ? anything() : nothing();
  if (const auto found = node_of_json_.find(&schema); found != node_of_json_.end()) {
    return literal_of(found->second);
  }
  if (!schema.is_object()) {
    throw Error(ErrorCode::invalid,
                fmt::format("schema: {}: {}", path_of(schema),
                            found_instead(shown(schema), "a schema (an object, true or false)")));
  }
  if (schema.object()->empty()) return anything();
  if (const auto own = resource_of_root_.find(&schema); own != resource_of_root_.end()) {
    resource_index = own->second;
  }
  const SchemaLiteral literal = add({.json = &schema, .resource_index = resource_index});
  nodes_.back().is_read = false;
  node_of_json_.emplace(&schema, node_of(literal));
  return literal;
}

const SchemaNode& SchemaDocument::node(SchemaNodeId id) {
  SchemaNode& node = nodes_[static_cast<size_t>(id)];
  if (!node.is_read) {
    node.is_read = true;
    read_schema_keywords(*this, node);
  }
  return node;
}

std::optional<std::pair<const Json*, uint32_t>> SchemaDocument::find_target(
    const SchemaReference& reference, uint32_t resource_index) const {
  const Json* root = resources_[resource_index].root;
  if (reference.resource != resources_[resource_index].uri) {
    const auto found = roots_.find(reference.resource);
    if (found == roots_.end()) return std::nullopt;
    std::tie(root, resource_index) = found->second;
  }
  if (reference.fragment.empty()) return std::pair{root, resource_index};
  if (reference.fragment[0] != '/') {
    const auto found = anchors_.find(reference.resource + "#" + reference.fragment);
    if (found == anchors_.end()) return std::nullopt;
    return std::pair{found->second, resource_index};
  }
  const std::string_view pointer = reference.fragment;
  for (size_t begin = 1; begin <= pointer.size();) {
    const size_t end = std::min(pointer.find('/', begin), pointer.size());
    root = step_of_pointer(*root, unescaped_pointer_token(pointer.substr(begin, end - begin)));
    if (root == nullptr) return std::nullopt;
    const auto own = resource_of_root_.find(root);
    if (own != resource_of_root_.end()) resource_index = own->second;
    begin = end + 1;
  }
  return std::pair{root, resource_index};
}

std::optional<SchemaLiteral> SchemaDocument::resolve(const Json& schema, std::string_view reference,
                                                     uint32_t resource_index) {
  const SchemaReference address =
      resolve_schema_reference(resources_[resource_index].uri, reference);
  const auto target = find_target(address, resource_index);
  if (!target) {
    const bool is_here = address.resource == resources_[resource_index].uri ||
                         roots_.find(address.resource) != roots_.end();
    if (!is_here) return std::nullopt;
    fail(ErrorCode::invalid, schema, "$ref",
         fmt::format("{} points to nothing", shown_text(reference)));
  }
  return literal_at(*target->first, target->second);
}

SchemaLiteral SchemaDocument::literal_of_value(const Json& value, uint32_t resource_index) {
  if (const auto found = node_of_value_.find(&value); found != node_of_value_.end()) {
    return literal_of(found->second);
  }
  SchemaNode made{.json = &value, .resource_index = resource_index};
  if (const Json::Array* array = value.array()) {
    made.kinds = kArrayKind;
    for (const Json& item : *array) {
      made.prefix_items.push_back(literal_of_value(item, resource_index));
    }
    made.min_items = made.max_items = static_cast<uint32_t>(array->size());
  } else if (const Json::Object* object = value.object()) {
    made.kinds = kObjectKind;
    for (const auto& [name, member] : *object) {
      made.properties.emplace_back(name, literal_of_value(member, resource_index));
      made.required.emplace_back(name);
    }
    made.additional = nothing();
  } else {
    made.values.push_back(schema_values({&value, 1}));
  }
  const SchemaLiteral literal = add(std::move(made));
  node_of_value_.emplace(&value, node_of(literal));
  return literal;
}

RegexId SchemaDocument::pattern(std::string_view pattern) {
  if (const auto found = patterns_.find(pattern); found != patterns_.end()) return found->second;
  const RegexId regex = parse_pattern(regexes(), pattern, form_, PatternMatch::anywhere);
  patterns_.emplace(pattern, regex);
  return regex;
}

std::optional<RegexId> SchemaDocument::format(std::string_view name) {
  const auto found = formats_.find(name);
  if (found != formats_.end()) return found->second;
  return formats_.emplace(name, json_format(regexes(), name, form_)).first->second;
}

std::string SchemaDocument::path_of(const Json& value) const {
  std::string pointer = "#";
  find_pointer(document_, value, pointer);
  return pointer;
}

void SchemaDocument::fail(ErrorCode code, const Json& schema, std::string_view keyword,
                          std::string_view what) const {
  throw Error(code, fmt::format("schema: {}: \"{}\": {}", path_of(schema), keyword, what));
}

void SchemaDocument::leave_out(const Json& schema, std::string_view keyword,
                               std::string_view reason) {
  if (rigor_ != SchemaRigor::best_effort) fail(ErrorCode::unsupported, schema, keyword, reason);
  builder_.warn(
      fmt::format("schema: {}: \"{}\" isn't enforced: {}", path_of(schema), keyword, reason));
}

std::optional<SchemaLiteral> SchemaNode::property(std::string_view name) const {
  if (!property_index.empty()) {
    const auto found = property_index.find(name);
    return found == property_index.end() ? std::nullopt : std::optional(found->second);
  }
  for (const auto& [declared, literal] : properties) {
    if (declared == name) return literal;
  }
  return std::nullopt;
}

void add_to_schema_set(SchemaSet& set, SchemaLiteral literal) {
  if (std::find(set.begin(), set.end(), literal) == set.end()) set.push_back(literal);
}

}  // namespace paceline
