#include "chat/template_arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "chat/template_error.h"

namespace paceline {

void ArgumentReader::wrong_type(std::string_view name, std::string_view expected,
                                const TemplateValue& found) const {
  if (found.is_undefined()) throw TemplateError(found.why_undefined());
  throw TemplateError("{}: {} must be {}, not {}", function_, name, expected, found.type_name());
}

std::optional<TemplateValue> ArgumentReader::optional(std::string_view name) {
  const auto named = std::find_if(arguments_.named.begin(), arguments_.named.end(),
                                  [&](const auto& argument) { return argument.first == name; });
  const bool is_named = named != arguments_.named.end();
  if (next_ < arguments_.positional.size()) {
    if (is_named) throw TemplateError("{} got {} twice", function_, name);
    return std::move(arguments_.positional[next_++]);
  }
  if (!is_named) return std::nullopt;
  TemplateValue value = std::move(named->second);
  arguments_.named.erase(named);
  return value;
}

TemplateValue ArgumentReader::required(std::string_view name) {
  auto value = optional(name);
  if (!value) throw TemplateError("{} is missing its argument {}", function_, name);
  return std::move(*value);
}

int64_t ArgumentReader::integer(std::string_view name, std::optional<int64_t> otherwise) {
  const auto value = otherwise ? optional(name) : required(name);
  if (!value) return *otherwise;
  if (!value->is_integral()) wrong_type(name, "an integer", *value);
  return value->integer();
}

bool ArgumentReader::truth(std::string_view name, bool otherwise) {
  const auto value = optional(name);
  return value ? value->truth() : otherwise;
}

std::string ArgumentReader::text(std::string_view name, std::optional<std::string_view> otherwise) {
  const auto value = otherwise ? optional(name) : required(name);
  if (!value) return std::string(*otherwise);
  if (!value->is_string()) wrong_type(name, "a string", *value);
  return value->text();
}

TemplateValues ArgumentReader::rest() {
  TemplateValues left(arguments_.positional.begin() + static_cast<std::ptrdiff_t>(next_),
                      arguments_.positional.end());
  next_ = arguments_.positional.size();
  return left;
}

void ArgumentReader::finish() {
  if (next_ < arguments_.positional.size()) {
    throw TemplateError("{} takes at most {} arguments, found {}", function_, next_,
                        arguments_.positional.size());
  }
  if (!arguments_.named.empty()) {
    throw TemplateError("{} has no argument {}", function_, arguments_.named[0].first);
  }
}

}  // namespace paceline
