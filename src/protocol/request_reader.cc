#include "protocol/request_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/suggest.h"
#include "protocol/api_error.h"

namespace paceline {

RequestReader::RequestReader(const FieldValue& object)
    : object_(object.json()), terms_(object.terms()), path_(object.path()) {}

RequestReader::RequestReader(const Json& body, const RequestTerms& terms)
    : object_(body), terms_(terms) {
  if (!body.is_object()) {
    throw RequestError("", "invalid_value",
                       fmt::format("the request: found {}, expected an object", body.kind()));
  }
}

const Json* RequestReader::take(std::string_view name, bool is_required) {
  known_.push_back(name);
  if (is_required) required_.push_back(name);
  return object_.find_value(name);
}

std::string RequestReader::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

void RequestReader::refuse_field(std::string_view name, std::string_view help) const {
  const std::string path = path_of(name);
  throw RequestError(path, "unsupported_parameter",
                     fmt::format("{}: not supported{}{}", path, help.empty() ? "" : "; ", help));
}

void RequestReader::finish() const {
  for (const auto& [key, value] : object_.as_object(path_)) {
    if (value.is_null()) continue;
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    const std::string path = path_of(key);
    if (terms_.on_unknown_field == nullptr) {
      throw RequestError(path, "unknown_parameter",
                         fmt::format("unknown field {}{}", path, did_you_mean(key, known_)));
    }
    terms_.on_unknown_field(path);
  }
  for (const std::string_view name : required_) require(name);
}

void RequestReader::require(std::string_view name) const {
  if (object_.find_value(name) != nullptr) return;
  const std::string path = path_of(name);
  throw RequestError(path, "missing_required_parameter", path + ": missing");
}

}  // namespace paceline
