#include "protocol/schemas.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

#include "base/error.h"
#include "base/json_writer.h"

namespace paceline {
namespace {

struct ObjectMembers {
  Json::Object properties;
  Json::Array required;
};

class NotationReader {
 public:
  explicit NotationReader(std::string_view text) : rest_(text) {}

  Json::Object read() {
    Json::Object schemas;
    for (skip_blanks(); !rest_.empty(); skip_blanks()) {
      std::string name = take_name();
      expect('=');
      if (std::islower(static_cast<unsigned char>(name[0])) != 0) {
        expect('{');
        groups_[name] = take_members();
      } else {
        schemas.emplace_back(std::move(name), take_type());
      }
    }
    return schemas;
  }

 private:
  void skip_blanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size()));
  }

  // A zero byte after the end.
  char at(size_t position) const { return position < rest_.size() ? rest_[position] : '\0'; }

  bool skip(std::string_view mark) {
    skip_blanks();
    if (!rest_.starts_with(mark)) return false;
    rest_.remove_prefix(mark.size());
    return true;
  }

  void expect(char mark) { PL_CHECK(skip({&mark, 1}), "the notation of a schema is wrong"); }

  std::string take(size_t size) {
    std::string taken(rest_.substr(0, size));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  std::string take_name() {
    constexpr std::string_view kOfNames =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
    skip_blanks();
    return take(rest_.find_first_not_of(kOfNames));
  }

  std::string take_until(char mark) {
    std::string taken = take(rest_.find(mark));
    expect(mark);
    return taken;
  }

  // From after its first slash. It may have slashes too.
  std::string take_pattern() {
    constexpr std::string_view kAfterPattern(" ,}:\n\0", 6);
    size_t end = rest_.find('/');
    while (end != std::string_view::npos &&
           kAfterPattern.find(at(end + 1)) == std::string_view::npos) {
      end = rest_.find('/', end + 1);
    }
    std::string pattern = take(end);
    expect('/');
    return pattern;
  }

  // A line break in it is a blank.
  void take_description(Json::Object& schema) {
    if (!skip("\"")) return;
    std::string text;
    for (const char byte : take_until('"')) {
      if (byte == '\n') text += ' ';
      if (byte != '\n' && (byte != ' ' || !text.ends_with(' '))) text += byte;
    }
    schema.emplace_back("description", std::move(text));
  }

  Json take_type() {
    std::vector<Json::Object> kinds{take_kind()};
    while (skip("|")) kinds.push_back(take_kind());
    Json::Object schema = kinds.size() == 1 ? std::move(kinds[0]) : one_of(std::move(kinds));
    take_description(schema);
    return schema;
  }

  static const Json& type_of(const Json::Object& kind) { return kind.at(0).second; }

  static bool is(const Json::Object& kind, std::string_view key) { return kind.at(0).first == key; }

  static Json::Object one_of(std::vector<Json::Object> kinds) {
    Json::Array all;
    if (is(kinds[0], "const")) {
      for (const Json::Object& kind : kinds) {
        const bool is_null = to_json(kind) == R"({"type":"null"})";
        PL_CHECK(is_null || is(kind, "const"), "a constant stands beside a type other than null");
        all.push_back(is_null ? Json() : type_of(kind));
      }
      return {{"enum", std::move(all)}};
    }
    if (std::any_of(kinds.begin(), kinds.end(), [](const auto& k) { return is(k, "$ref"); })) {
      for (Json::Object& kind : kinds) all.push_back(std::move(kind));
      return {{"anyOf", std::move(all)}};
    }
    Json::Object merged{{"type", Json()}};
    for (Json::Object& kind : kinds) {
      all.push_back(type_of(kind));
      merged.insert(merged.end(), kind.begin() + 1, kind.end());
    }
    merged[0].second = std::move(all);
    return merged;
  }

  // One of a union.
  Json::Object take_kind() {
    if (skip("{")) return take_object();
    if (skip("[")) return take_array();
    if (skip("/")) return {{"type", "string"}, {"pattern", take_pattern()}};
    if (skip("'")) return {{"const", take_until('\'')}};
    if (std::isdigit(static_cast<unsigned char>(at(0))) != 0 || at(0) == '-') {
      return {{"const", *take_number()}};
    }
    return take_word();
  }

  Json::Object take_word() {
    const std::string word = take_name();
    if (word == "any") return {};
    if (word == "true" || word == "false") return {{"const", word == "true"}};
    if (word == "text") return {{"type", "string"}, {"minLength", int64_t{1}}};
    if (word == "count") return {{"type", "integer"}, {"minimum", int64_t{0}}};
    if (std::isupper(static_cast<unsigned char>(word[0])) != 0) {
      return {{"$ref", "#/components/schemas/" + word}};
    }
    Json::Object schema{{"type", word}};
    if (word != "integer" && word != "number") return schema;
    const auto minimum = take_number();
    if (minimum) schema.emplace_back("minimum", *minimum);
    if (skip("..")) {
      const auto maximum = take_number();
      if (maximum) schema.emplace_back("maximum", *maximum);
    }
    return schema;
  }

  std::optional<int64_t> take_number() {
    skip_blanks();
    int64_t number = 0;
    const auto read = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (read.ec != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<size_t>(read.ptr - rest_.data()));
    return number;
  }

  Json::Object take_array() {
    Json::Object schema{{"type", "array"}};
    if (skip("]")) {
      schema.emplace_back("maxItems", int64_t{0});
      return schema;
    }
    Json items = take_type();
    expect(']');
    if (skip("+")) schema.emplace_back("minItems", int64_t{1});
    schema.emplace_back("items", std::move(items));
    return schema;
  }

  Json::Object take_object() {
    Json::Object schema{{"type", "object"}};
    const bool has_any_key = skip("*");
    if (has_any_key || skip("/")) {
      if (!has_any_key) {
        schema.emplace_back("propertyNames", Json::Object{{"pattern", take_pattern()}});
      }
      expect(':');
      schema.emplace_back("additionalProperties", take_type());
      expect('}');
      return schema;
    }
    ObjectMembers members = take_members();
    if (!members.required.empty()) schema.emplace_back("required", std::move(members.required));
    if (!members.properties.empty()) {
      schema.emplace_back("properties", std::move(members.properties));
    }
    return schema;
  }

  // To the closing brace.
  ObjectMembers take_members() {
    ObjectMembers members;
    do {
      if (skip("...}")) {  // others too, so that none are listed
        for (const auto& [name, schema] : members.properties) {
          PL_CHECK(to_json(schema) == "{}", "a listed member has a type that would be lost");
        }
        members.properties.clear();
        return members;
      }
      if (skip("...")) {
        const ObjectMembers& group = groups_.at(take_name());
        members.properties.insert(members.properties.end(), group.properties.begin(),
                                  group.properties.end());
        if (skip("?")) continue;
        members.required.insert(members.required.end(), group.required.begin(),
                                group.required.end());
      } else {
        std::string name = take_name();
        if (!skip("?")) members.required.emplace_back(name);
        expect(':');
        members.properties.emplace_back(std::move(name), take_type());
      }
    } while (skip(","));
    expect('}');
    return members;
  }

  std::string_view rest_;
  std::map<std::string, ObjectMembers> groups_;
};

}  // namespace

std::string schemas_json(std::string_view text) { return to_json(NotationReader(text).read()); }

}  // namespace paceline
