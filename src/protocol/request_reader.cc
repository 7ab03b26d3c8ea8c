#include "protocol/request_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/request_error.h"
#include "base/suggest.h"

namespace paceline {

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
