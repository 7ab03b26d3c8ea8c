#include "chat/python_value_format.h"

#include <fmt/format.h>

#include "chat/format_cursor.h"
#include "chat/python_format_spec.h"
#include "chat/python_string.h"
#include "chat/template_convert.h"

namespace paceline {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw TemplateError(message); }

bool is_alignment(std::string_view character) {
  return character.size() == 1 && is_one_of(character[0], "<>^=");
}

// [[fill]align][sign][#][0][width][grouping][.precision][type]
FormatSpec parse_spec(std::string_view text, bool is_number) {
  FormatSpec spec;
  FormatCursor cursor(text);
  const auto characters = characters_of(text);
  bool has_fill = false;
  if (characters.size() > 1 && is_alignment(characters[1])) {
    spec.fill = characters[0];
    has_fill = true;
    cursor.skip(characters[0].size());
    spec.alignment = cursor.take();
  } else {
    spec.alignment = cursor.take_any("<>^=");
  }
  spec.sign = cursor.take_any("+- ");
  spec.is_alternate = cursor.take_if('#');
  if (!has_fill && cursor.take_if('0')) {
    spec.fill = "0";
    if (spec.alignment == '\0' && is_number) spec.alignment = '=';
  }
  spec.width = cursor.take_number().value_or(0);
  spec.grouping = cursor.take_any(",_");
  if (spec.grouping != '\0' && cursor.take_any(",_") != '\0') {
    refuse("Cannot specify both ',' and '_'.");
  }
  if (cursor.take_if('.')) {
    const auto precision = cursor.take_number();
    if (!precision) refuse("Format specifier missing precision");
    spec.precision = precision;
  }
  spec.type = cursor.take();
  if (!cursor.at_end()) refuse(fmt::format("Invalid format specifier '{}'", text));
  return spec;
}

void check_grouping(const FormatSpec& spec) {
  const bool fits = spec.grouping == '\0' || spec.type == '\0' ||
                    is_one_of(spec.type, "deEfFgG%") ||
                    (spec.grouping == '_' && is_one_of(spec.type, "xXob"));
  if (!fits) refuse(fmt::format("Cannot specify '{}' with '{}'.", spec.grouping, spec.type));
}

std::string text(TemplateRuntime& runtime, std::string_view value, const FormatSpec& spec) {
  if (spec.sign != '\0') refuse("Sign not allowed in string format specifier");
  if (spec.is_alternate) refuse("Alternate form (#) not allowed in string format specifier");
  if (spec.alignment == '=') refuse("'=' alignment not allowed in string format specifier");
  if (spec.grouping != '\0') refuse(fmt::format("Cannot specify '{}' with 's'.", spec.grouping));
  return format_text(runtime, value, spec);
}

std::string integer(TemplateRuntime& runtime, int64_t value, const FormatSpec& spec) {
  if (spec.precision) refuse("Precision not allowed in integer format specifier");
  if (spec.type != 'c') return format_integer(runtime, value, spec);
  if (spec.sign != '\0') refuse("Sign not allowed with integer format specifier 'c'");
  if (spec.is_alternate) refuse("Alternate form (#) not allowed with integer format specifier 'c'");
  FormatSpec of_text = spec;
  if (spec.alignment == '\0' || spec.alignment == '=') of_text.alignment = '>';
  return format_text(runtime, character_of(value), of_text);
}

}  // namespace

std::string format_value(TemplateRuntime& runtime, const TemplateValue& value,
                         std::string_view specification) {
  if (specification.empty()) return to_text(runtime, value);
  require_defined(value);
  if (!value.is_string() && !value.is_number()) {
    refuse(fmt::format("unsupported format string passed to {}.__format__", value.type_name()));
  }
  FormatSpec spec = parse_spec(specification, value.is_number());
  const std::string_view types = value.is_string()     ? "s"
                                 : value.is_integral() ? "bcdoxXneEfFgG%"
                                                       : "neEfFgG%";
  if (spec.type != '\0' && !is_one_of(spec.type, types)) {
    refuse(fmt::format("Unknown format code '{}' for object of type '{}'", spec.type,
                       value.type_name()));
  }
  if (value.is_string()) return text(runtime, value.text(), spec);
  check_grouping(spec);
  if (value.is_integral() && !is_one_of(spec.type, "eEfFgG%")) {
    return integer(runtime, value.integer(), spec);
  }
  if (spec.type == 'n') spec.type = 'g';
  return format_real(runtime, value.real(), spec);
}

}  // namespace paceline
