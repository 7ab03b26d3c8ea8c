#include "tools/schema_parts.h"

#include <algorithm>

#include "base/json_writer.h"

namespace paceline {
namespace {

// The names of the types that `kinds` allows. `type` is the schema's keyword, or nullptr: if it is
// there, only types that it names are kept, and words in it that name no type stay.
Json types_of(JsonKinds kinds, const Json* type) {
  Json::Array types;
  if (type == nullptr) {
    for (const auto& [name, bits] : kJsonTypes) {
      if ((kinds & bits) != 0 && name != "integer") types.push_back(Json(std::string(name)));
    }
    return Json(std::move(types));
  }
  const Json::Array one{*type};
  for (const Json& word : type->is_array() ? *type->array() : one) {
    const auto* known =
        std::find_if(kJsonTypes.begin(), kJsonTypes.end(), [&](const auto& candidate) {
          return word.is_string() && *word.string() == candidate.first;
        });
    if (known == kJsonTypes.end() || (kinds & known->second) != 0) types.push_back(word);
  }
  return Json(std::move(types));
}

char lower(char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c + 32) : c; }

}  // namespace

std::string schema_of_kinds(std::string_view schema, JsonKinds kinds) {
  const Json json = parse_json(schema, "schema");
  if (json.is_object() && json.find("$ref") == nullptr) {
    Json::Object document{{"type", types_of(kinds, json.find("type"))}};
    for (const auto& [name, member] : *json.object()) {
      if (name != "type") document.emplace_back(name, member);
    }
    return to_json(Json(std::move(document)));
  }
  // In older drafts nothing counts beside "$ref".
  Json::Object document{{"type", types_of(kinds, nullptr)}, {"allOf", Json(Json::Array{json})}};
  for (const char* name : {"$schema", "$defs", "definitions"}) {
    if (const Json* member = json.find(name)) document.emplace_back(name, *member);
  }
  return to_json(Json(std::move(document)));
}

bool is_before(std::string_view first, std::string_view second) {
  return std::lexicographical_compare(first.begin(), first.end(), second.begin(), second.end(),
                                      [](char a, char b) { return lower(a) < lower(b); });
}

std::string with_sorted_properties(std::string_view schema) {
  Json json = parse_json(schema, "schema");
  if (!json.is_object()) return std::string(schema);
  Json::Object document = *json.object();
  for (auto& [name, value] : document) {
    if (name != "properties" || !value.is_object()) continue;
    Json::Object properties = *value.object();
    std::stable_sort(properties.begin(), properties.end(),
                     [](const auto& a, const auto& b) { return is_before(a.first, b.first); });
    value = Json(std::move(properties));
  }
  return to_json(Json(std::move(document)));
}

}  // namespace paceline
