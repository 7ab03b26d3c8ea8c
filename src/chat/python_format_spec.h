// How a format writes one value, once its specification is read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "chat/template_runtime.h"

namespace paceline {

// Of "%+05.1f" and "{:+05.1f}" alike.
struct FormatSpec {
  std::string_view fill = " ";  // of the format, which outlives it
  char alignment = '\0';        // < > ^ or =, which pads behind the sign; none: the value's own
  char sign = '\0';             // + or blank stands before what isn't negative
  bool is_alternate = false;    // #
  int64_t width = 0;
  char grouping = '\0';  // , or _
  std::optional<int64_t> precision = {};
  char type = '\0';
};

inline bool is_one_of(char type, std::string_view types) {
  return types.find(type) != std::string_view::npos;
}

// A precision of text is its greatest length; one of a number beyond 1000, and a width far beyond
// the value, are a TemplateError exhausted.
std::string format_text(TemplateRuntime& runtime, std::string_view text, const FormatSpec& spec);
// `spec.type` is x, X, o, b, or anything else for decimal; `spec.precision` the least number of
// digits.
std::string format_integer(TemplateRuntime& runtime, int64_t value, const FormatSpec& spec);
// `spec.type` is e, E, f, F, g, G, % or none.
std::string format_real(TemplateRuntime& runtime, double value, const FormatSpec& spec);
// The character with this number.
std::string character_of(int64_t code_point);

}  // namespace paceline
