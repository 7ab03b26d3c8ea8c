// Writes one value by a parsed format specification.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "chat/template_runtime.h"

namespace paceline {

// For both "%+05.1f" and "{:+05.1f}".
struct FormatSpec {
  std::string_view fill = " ";  // of the format, which outlives it
  char alignment = '\0';        // < > ^ or =, which pads after the sign; none: by type
  char sign = '\0';             // + or blank before numbers that aren't negative
  bool is_alternate = false;    // #
  int64_t width = 0;
  char grouping = '\0';  // , or _
  std::optional<int64_t> precision = {};
  char type = '\0';
};

inline bool is_one_of(char type, std::string_view types) {
  return types.find(type) != std::string_view::npos;
}

// The precision of a text is its maximum length. A number's precision beyond 1000 and excessive
// padding throw TemplateError exhausted.
std::string format_text(TemplateRuntime& runtime, std::string_view text, const FormatSpec& spec);
// `spec.type` is x, X, o, b, or anything else for decimal; `spec.precision` the least number of
// digits.
std::string format_integer(TemplateRuntime& runtime, int64_t value, const FormatSpec& spec);
// `spec.type` is e, E, f, F, g, G, % or none.
std::string format_real(TemplateRuntime& runtime, double value, const FormatSpec& spec);
// The character with this code point.
std::string character_of(int64_t code_point);

}  // namespace paceline
