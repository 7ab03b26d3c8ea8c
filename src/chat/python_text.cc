#include "chat/python_text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "base/utf8.h"
#include "chat/python_character.h"
#include "chat/python_string.h"
#include "chat/template_error.h"
#include "chat/template_object.h"

namespace paceline {
namespace {

void append_escaped(std::string& out, char32_t code_point) {
  const auto number = static_cast<uint32_t>(code_point);
  const size_t at = std::u32string_view(U"\n\r\t").find(code_point);
  if (at != std::u32string_view::npos) {
    out += fmt::format("\\{}", "nrt"[at]);
  } else if (number < 0x100) {
    out += fmt::format("\\x{:02x}", number);
  } else if (number < 0x10000) {
    out += fmt::format("\\u{:04x}", number);
  } else {
    out += fmt::format("\\U{:08x}", number);
  }
}

// Uses single quotes, unless the text contains single quotes only.
void append_quoted(std::string& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out.push_back(quote);
  while (!text.empty()) {
    const DecodedCodePoint here = decode_utf8(text);
    if (here.code_point == U'\\' || here.code_point == static_cast<char32_t>(quote)) {
      out.push_back('\\');
      out.push_back(text[0]);
    } else if (is_printable(here.code_point)) {
      out += text.substr(0, here.size);
    } else {
      append_escaped(out, here.code_point);
    }
    text.remove_prefix(here.size);
  }
  out.push_back(quote);
}

void check_limit(const std::string& out, size_t limit) {
  if (out.size() > limit) {
    throw TemplateError(fmt::format("a text of more than {} bytes", limit), ErrorCode::exhausted);
  }
}

void append_items(std::string& out, const TemplateSequence& sequence, size_t limit) {
  out += sequence.is_tuple ? "(" : "[";
  bool is_first = true;
  for (const TemplateValue& item : sequence.items) {
    if (!is_first) out += ", ";
    is_first = false;
    append_repr(out, item, limit);
  }
  if (sequence.is_tuple && sequence.items.size() == 1) out += ",";
  out += sequence.is_tuple ? ")" : "]";
}

void append_members(std::string& out, const TemplateMapping& members, size_t limit) {
  out += "{";
  bool is_first = true;
  for (const auto& [key, value] : members.members()) {
    if (!is_first) out += ", ";
    is_first = false;
    append_repr(out, key, limit);
    out += ": ";
    append_repr(out, value, limit);
  }
  out += "}";
}

}  // namespace

// Python writes an exponent below 1e-4 and from 1e16 on.
std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const double magnitude = std::fabs(value);
  const bool with_exponent = magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16);
  std::array<char, 64> digits;
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value,
                    with_exponent ? std::chars_format::scientific : std::chars_format::fixed)
          .ptr;
  std::string text(digits.data(), end);
  if (!with_exponent && text.find('.') == std::string::npos) text += ".0";
  return text;
}

void append_repr(std::string& out, const TemplateValue& value, size_t limit) {
  check_limit(out, limit);
  if (value.is_string()) {
    if (value.is_safe()) out += "Markup(";
    append_quoted(out, value.text());
    if (value.is_safe()) out += ")";
    check_limit(out, limit);
  } else if (value.is_sequence()) {
    append_items(out, value.sequence(), limit);
  } else if (value.is_mapping()) {
    append_members(out, value.members(), limit);
  } else if (value.is_undefined()) {
    out += "Undefined";
  } else {
    append_str(out, value, limit);
  }
}

void append_str(std::string& out, const TemplateValue& value, size_t limit) {
  if (value.is_string()) {
    out += value.text();
    check_limit(out, limit);
  } else if (value.is_none()) {
    out += "None";
  } else if (value.is_bool()) {
    out += value.as_bool() ? "True" : "False";
  } else if (value.is_int()) {
    out += fmt::format("{}", value.integer());
  } else if (value.is_float()) {
    out += float_repr(value.real());
  } else if (value.is_stream()) {
    out += "<generator object>";
  } else if (value.is_object()) {
    out += fmt::format("<{} object>", value.object().type_name());
  } else if (!value.is_undefined()) {
    append_repr(out, value, limit);
  }
}

}  // namespace paceline
