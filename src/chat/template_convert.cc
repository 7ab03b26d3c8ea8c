#include "chat/template_convert.h"

#include <fmt/format.h>

#include "chat/python_string.h"
#include "chat/python_text.h"
#include "chat/template_methods.h"

namespace paceline {

TemplateValue from_json(const Json& json) {
  if (json.is_null()) return {};
  if (const auto flag = json.boolean()) return *flag;
  if (const std::string* text = json.string()) return *text;
  if (json.is_array()) {
    TemplateValues items;
    for (const Json& item : *json.array()) items.push_back(from_json(item));
    return TemplateValue::list(std::move(items));
  }
  if (json.is_object()) {
    TemplateMapping members;
    for (const auto& [key, value] : *json.object())
      members.set(TemplateValue(key), from_json(value));
    return TemplateValue::mapping(std::move(members));
  }
  // 4096.0 stays a floating-point number, and so does an integer of more than 64 bits.
  const auto integer = json.is_integer() ? json.integer() : std::nullopt;
  if (integer) return *integer;
  return *json.number();
}

std::string to_text(TemplateRuntime& runtime, const TemplateValue& value) {
  if (value.is_string()) {
    runtime.charge(value.text().size());
    return value.text();
  }
  std::string text;
  append_str(text, value, runtime.limits().output_bytes);
  runtime.charge(text.size());
  return text;
}

TemplateValues to_items(TemplateRuntime& runtime, const TemplateValue& value) {
  TemplateValues items;
  if (value.is_sequence()) {
    items = value.items();
  } else if (value.is_mapping()) {
    for (const auto& member : value.members().members()) items.push_back(member.first);
  } else if (value.is_string()) {
    runtime.charge_items(value.text().size());
    for (const std::string_view character : characters_of(value.text()))
      items.emplace_back(std::string(character));
  } else if (value.is_stream()) {
    TemplateStream& stream = value.stream_part();
    items.assign(stream.items.begin() + static_cast<std::ptrdiff_t>(stream.next),
                 stream.items.end());
    stream.next = stream.items.size();
  } else if (!value.is_undefined()) {
    throw TemplateError("'{}' object is not iterable", value.type_name());
  }
  runtime.charge_items(items.size());
  return items;
}

std::optional<int64_t> length_if_any(const TemplateValue& value) {
  if (value.is_string()) return length_of(value.text());
  if (value.is_sequence()) return static_cast<int64_t>(value.items().size());
  if (value.is_mapping()) return static_cast<int64_t>(value.members().members().size());
  if (value.is_undefined()) return 0;
  return std::nullopt;
}

void require_defined(const TemplateValue& value) {
  if (value.is_undefined()) throw TemplateError(value.why_undefined());
}

namespace {

TemplateValue missing(const TemplateValue& value, std::string_view name) {
  const std::string owner = value.is_none() ? "None" : fmt::format("{} object", value.type_name());
  return TemplateValue::undefined(fmt::format("'{}' has no attribute '{}'", owner, name));
}

std::optional<TemplateValue> method_of(TemplateRuntime& runtime, const TemplateValue& value,
                                       const std::string& name) {
  if (value.is_object()) return value.object().attribute(name);
  if (value.is_sequence() && value.sequence().is_group && (name == "grouper" || name == "list")) {
    return value.items()[name == "list" ? 1 : 0];
  }
  if (!has_method(value, name)) return std::nullopt;
  return runtime.function("builtin_function_or_method",
                          [&runtime, value, name](TemplateArguments arguments) {
                            return call_method(runtime, value, name, std::move(arguments));
                          });
}

}  // namespace

TemplateValue attribute_of(TemplateRuntime& runtime, const TemplateValue& value,
                           const std::string& name) {
  require_defined(value);
  if (auto method = method_of(runtime, value, name)) return std::move(*method);
  if (value.is_mapping()) {
    if (const TemplateValue* member = value.members().find(std::string_view(name))) return *member;
  }
  return missing(value, name);
}

TemplateValue item_of(TemplateRuntime& runtime, const TemplateValue& value,
                      const TemplateValue& key) {
  require_defined(value);
  if (value.is_mapping() && is_hashable(key)) {
    if (const TemplateValue* member = value.members().find(key)) return *member;
  }
  if (key.is_integral() && (value.is_sequence() || value.is_string())) {
    const int64_t length = *length_if_any(value);
    const int64_t index = key.integer() < 0 ? key.integer() + length : key.integer();
    if (index >= 0 && index < length) {
      if (value.is_sequence()) return value.items()[static_cast<size_t>(index)];
      runtime.step(value.text().size() / 64);
      return std::string(characters_of(value.text())[static_cast<size_t>(index)]);
    }
  }
  if (key.is_string()) {
    if (auto method = method_of(runtime, value, key.text())) return std::move(*method);
    return missing(value, key.text());
  }
  return missing(value, to_text(runtime, key));
}

std::string html_escaped(std::string_view text) {
  constexpr std::string_view kEscaped = "&<>'\"";
  constexpr std::string_view kEntities[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
  std::string out;
  for (const char c : text) {
    const size_t at = kEscaped.find(c);
    out += at == std::string_view::npos ? std::string_view(&c, 1) : kEntities[at];
  }
  return out;
}

}  // namespace paceline
