#include "chat/python_format_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/utf8.h"
#include "chat/python_case.h"
#include "chat/python_padding.h"
#include "chat/python_string.h"
#include "chat/python_text.h"

namespace paceline {
namespace {

constexpr int kMaxPrecision = 1000;
constexpr int kDefaultPrecision = 6;

// The parts of a number, between which signs, zeros and separators are put.
struct NumberParts {
  bool is_negative = false;
  std::string prefix = {};  // 0x
  std::string digits = {};  // before the point
  std::string rest = {};    // point, fraction, exponent; or inf, nan
};

std::string aligned(TemplateRuntime& runtime, std::string_view text, const FormatSpec& spec,
                    char alignment) {
  return padded(runtime, text, spec.width, spec.fill,
                alignment == '<'   ? Alignment::left
                : alignment == '^' ? Alignment::center
                                   : Alignment::right);
}

// Puts separators between groups of digits. Zeros that fill a width are grouped too.
std::string grouped(std::string digits, const FormatSpec& spec, int64_t least_width) {
  if (least_width > kMaxPadding) throw TemplateError("too wide a number", ErrorCode::exhausted);
  const int64_t group = is_one_of(spec.type, "xXob") ? 4 : 3;
  auto count = static_cast<int64_t>(digits.size());
  while (count + (count - 1) / group < least_width) ++count;
  digits.insert(0, static_cast<size_t>(count) - digits.size(), '0');
  for (int64_t i = count - group; i > 0; i -= group) {
    digits.insert(static_cast<size_t>(i), 1, spec.grouping);
  }
  return digits;
}

std::string number(TemplateRuntime& runtime, NumberParts parts, const FormatSpec& spec) {
  std::string before = parts.is_negative                      ? "-"
                       : spec.sign == '+' || spec.sign == ' ' ? std::string(1, spec.sign)
                                                              : "";
  before += parts.prefix;
  const char alignment = spec.alignment == '\0' ? '>' : spec.alignment;
  if (spec.grouping != '\0' && !parts.digits.empty()) {
    const bool fills = alignment == '=' && spec.fill == "0";
    const auto others = static_cast<int64_t>(before.size() + parts.rest.size());
    parts.digits = grouped(std::move(parts.digits), spec, fills ? spec.width - others : 0);
  }
  const std::string behind = parts.digits + parts.rest;
  if (alignment != '=') return aligned(runtime, before + behind, spec, alignment);
  const auto size = static_cast<int64_t>(before.size());
  return before + padded(runtime, behind, spec.width - size, spec.fill, Alignment::right);
}

// For "#": every number gets a point.
void insert_point(std::string& text) {
  if (text.find('.') == std::string::npos) text.insert(std::min(text.find('e'), text.size()), ".");
}

// C's %f and %e.
std::string written(double value, int precision, char type, bool is_alternate) {
  std::string text = type == 'e' ? fmt::format("{:.{}e}", value, precision)
                                 : fmt::format("{:.{}f}", value, precision);
  if (is_alternate) insert_point(text);
  return text;
}

void strip_zeros(std::string& text) {
  const std::string exponent = text.substr(std::min(text.find('e'), text.size()));
  text.resize(text.size() - exponent.size());
  if (text.find('.') != std::string::npos) text.resize(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  text += exponent;
}

// C's %g, with an exponent below -4 and from `exponent_from` on.
std::string general(double value, int precision, int exponent_from, bool is_alternate) {
  std::string text = written(value, precision - 1, 'e', is_alternate);
  const int exponent = std::stoi(text.substr(text.find('e') + 1));
  if (exponent >= -4 && exponent < exponent_from) {
    text = written(value, precision - 1 - exponent, 'f', is_alternate);
  }
  if (!is_alternate) strip_zeros(text);
  return text;
}

// Like repr: at least one digit after the point, or an exponent.
std::string as_repr(double value, std::optional<int> precision, bool is_alternate) {
  std::string text =
      precision ? general(value, *precision, *precision - 1, is_alternate) : float_repr(value);
  if (is_alternate) insert_point(text);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

int precision_of(const FormatSpec& spec, int otherwise) {
  if (spec.precision.value_or(0) > kMaxPrecision) {
    throw TemplateError("a precision beyond 1000", ErrorCode::exhausted);
  }
  return static_cast<int>(spec.precision.value_or(otherwise));
}

std::string real_digits(double magnitude, const FormatSpec& spec) {
  if (!std::isfinite(magnitude)) return std::isnan(magnitude) ? "nan" : "inf";
  const int precision = precision_of(spec, kDefaultPrecision);
  const int digits = std::max(precision, 1);
  switch (spec.type) {
    case '\0':
      return as_repr(magnitude, spec.precision ? std::optional(digits) : std::nullopt,
                     spec.is_alternate);
    case 'e':
    case 'E':
      return written(magnitude, precision, 'e', spec.is_alternate);
    case 'g':
    case 'G':
      return general(magnitude, digits, digits, spec.is_alternate);
    default:
      return written(magnitude, precision, 'f', spec.is_alternate);
  }
}

std::string digits_of(uint64_t magnitude, char type) {
  switch (type) {
    case 'x':
      return fmt::format("{:x}", magnitude);
    case 'X':
      return fmt::format("{:X}", magnitude);
    case 'o':
      return fmt::format("{:o}", magnitude);
    case 'b':
      return fmt::format("{:b}", magnitude);
    default:
      return fmt::format("{}", magnitude);
  }
}

}  // namespace

std::string format_text(TemplateRuntime& runtime, std::string_view text, const FormatSpec& spec) {
  if (spec.precision && length_of(text) > *spec.precision) {
    const auto characters = characters_of(text);
    const char* const end = characters[static_cast<size_t>(*spec.precision)].data();
    text = text.substr(0, static_cast<size_t>(end - text.data()));
  }
  return aligned(runtime, text, spec, spec.alignment == '\0' ? '<' : spec.alignment);
}

std::string format_integer(TemplateRuntime& runtime, int64_t value, const FormatSpec& spec) {
  const auto bits = static_cast<uint64_t>(value);
  NumberParts parts{.is_negative = value < 0,
                    .digits = digits_of(value < 0 ? ~bits + 1 : bits, spec.type)};
  if (spec.is_alternate && is_one_of(spec.type, "xXob")) parts.prefix = {'0', spec.type};
  const auto least = static_cast<size_t>(precision_of(spec, 0));
  if (parts.digits.size() < least) parts.digits.insert(0, least - parts.digits.size(), '0');
  return number(runtime, std::move(parts), spec);
}

std::string format_real(TemplateRuntime& runtime, double value, const FormatSpec& spec) {
  const double magnitude = std::fabs(spec.type == '%' ? value * 100 : value);
  std::string text = real_digits(magnitude, spec);
  if (is_one_of(spec.type, "EFG")) text = upper_case(text);
  const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  return number(runtime,
                {.is_negative = std::signbit(value) && !std::isnan(value),
                 .digits = text.substr(0, end),
                 .rest = text.substr(end) + (spec.type == '%' ? "%" : "")},
                spec);
}

std::string character_of(int64_t code_point) {
  if (code_point < 0 || code_point > 0x10FFFF) {
    throw TemplateError("%c arg not in range(0x110000)");
  }
  const bool is_surrogate = code_point >= 0xD800 && code_point < 0xE000;
  std::string text;
  append_utf8(text, is_surrogate ? kReplacementCharacter : static_cast<char32_t>(code_point));
  return text;
}

}  // namespace paceline
