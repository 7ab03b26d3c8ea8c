// The scalars of JSON as regular expressions over bytes.
#pragma once

#include <optional>
#include <string_view>

#include "grammar/regex_set.h"

namespace paceline {

// Any string with its quotes: UTF-8, every escape of JSON (of every character \uXXXX too), no lone
// surrogate.
RegexId json_string(RegexSet& regexes);
// How the bytes of a text stand between a JSON string's quotes: quotes, backslashes and control
// characters by their short escape, or \u00XX.
ByteSpelling json_string_spelling();
// A quote, `body` in the form TextForm::json, a quote.
RegexId json_quoted(RegexSet& regexes, RegexId body);

// Numbers. All but json_number are without exponents: comparing the values of numbers with
// exponents isn't regular, so a number is written with one only where its value doesn't matter.
//
// Bounds and other values are given as JSON writes them (Error invalid otherwise; Error exhausted
// with more than 400 digits before or behind the point).

struct JsonNumberRange {
  std::optional<std::string_view> min;
  std::optional<std::string_view> max;
  bool excludes_min = false;
  bool excludes_max = false;
};

// Every number without an exponent.
RegexId json_decimal(RegexSet& regexes);
// Every number, exponents included.
RegexId json_number(RegexSet& regexes);
// Numbers without an exponent whose fraction, if any, is zero: 1, 1.0 and 1.00, -0 too.
RegexId json_integer(RegexSet& regexes);
// The part of json_integer that has no fraction.
RegexId json_digits(RegexSet& regexes);
// The part of json_decimal in the range, by value: "1.50" is 1.5 and "-0" is 0.
RegexId json_decimals_between(RegexSet& regexes, const JsonNumberRange& range);
// The part of json_decimal that is a multiple of `divisor`, a decimal above 0; of an integer that
// isn't a power of ten without multiples that have more than one zero after the point. Error
// unsupported when it needs a divisor above 2^31 or more than 18 digits after the point.
RegexId json_multiples_of(RegexSet& regexes, std::string_view divisor);
// The texts in json_decimal that have this value.
RegexId json_number_equal_to(RegexSet& regexes, std::string_view value);

}  // namespace paceline
