#include "protocol/request_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/request_error.h"
#include "base/suggest.h"

namespace paceline {
namespace {

struct BodyCounts {
  size_t members = 0;
  size_t values = 0;
};

// Counts the punctuation between values: exact for valid JSON, an estimate otherwise.
BodyCounts count_body(std::string_view body) {
  BodyCounts counts;
  bool in_string = false;
  for (size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (c == '"') {
      in_string = !in_string;
    } else if (in_string) {
      i += c == '\\' ? 1 : 0;
    } else if (c == ':') {
      ++counts.members;
    } else if (c == ',' || c == '[' || c == '{') {
      ++counts.values;
    }
  }
  return counts;
}

void refuse_beyond(size_t count, size_t most, std::string_view what) {
  if (count <= most) return;
  throw RequestError("", ErrorReason::invalid_value,
                     fmt::format("the request: {} {}, expected at most {}", count, what, most));
}

}  // namespace

Json parse_request_body(std::string_view body) {
  const BodyCounts counts = count_body(body);
  refuse_beyond(counts.members, kMaxMembers, "members of objects");
  refuse_beyond(counts.values, kMaxValues, "values");
  return parse_json(body, "the request");
}

void append_missing_fields(const FieldList& others, FieldList& list) {
  for (const FieldInfo& other : others) {
    const auto is_same = [&](const FieldInfo& one) { return one.name == other.name; };
    if (std::none_of(list.begin(), list.end(), is_same)) list.push_back(other);
  }
}

RequestReader::RequestReader(const FieldValue& object)
    : object_(object.at()), terms_(object.terms()) {}

RequestReader::RequestReader(const Json& body, const RequestTerms& terms)
    : object_(body, ""), terms_(terms) {
  if (!body.is_object()) {
    throw RequestError("", ErrorReason::invalid_value,
                       "the request: " + found_instead(shown(body), "an object"));
  }
}

std::optional<JsonCursor> RequestReader::take(std::string_view name, bool is_required) {
  known_.push_back(name);
  if (is_required) required_.push_back(name);
  return object_.find(name);
}

// Whole, because it is an error's `param`.
std::string RequestReader::path_of(std::string_view name) const {
  const std::string& path = object_.path();
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

void RequestReader::refuse_field(std::string_view name, std::string_view help) const {
  const std::string path = path_of(name);
  throw RequestError(path, ErrorReason::unsupported_parameter,
                     fmt::format("{}: not supported{}{}", path, help.empty() ? "" : "; ", help));
}

void RequestReader::finish() const {
  for (const auto& [key, value] : object_.object()) {
    if (value.is_null()) continue;
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    const std::string path = path_of(key);
    if (terms_.on_unknown_field == nullptr) {
      throw RequestError(path, ErrorReason::unknown_parameter,
                         fmt::format("unknown field {}{}", path, did_you_mean(key, known_)));
    }
    terms_.on_unknown_field(path);
  }
  for (const std::string_view name : required_) require(name);
}

void RequestReader::require(std::string_view name) const {
  if (object_.find(name)) return;
  const std::string path = path_of(name);
  throw RequestError(path, ErrorReason::missing_parameter, path + ": missing");
}

}  // namespace paceline
