#include <algorithm>
#include <array>

#include "base/json_writer.h"
#include "base/utf8.h"
#include "grammar/json_text.h"
#include "grammar/pattern.h"
#include "grammar/schema_conjunct.h"

namespace paceline {
namespace {

// How a listed number stands: as the plain decimal, or with as many zeros after its fraction as
// there are.
enum class Zeros : uint8_t { none, any };

RegexId zero(RegexSet& regexes, Zeros zeros) {
  return zeros == Zeros::any ? json_number_equal_to(regexes, "0") : regexes.byte('0');
}

// What may follow the digits of a number without changing its value. "0" may have a sign, too, so
// it is none of these.
struct DecimalTails {
  RegexId of_whole = RegexSet::kEmpty;     // numbers without a point
  RegexId of_fraction = RegexSet::kEmpty;  // numbers with a point

  DecimalTails(RegexSet& regexes, Zeros zeros) {
    if (zeros == Zeros::none) return;
    of_whole = behind(regexes, "1");
    of_fraction = behind(regexes, "1.5");
  }
  RegexId of(std::string_view number) const {
    return number.find('.') == std::string_view::npos ? of_whole : of_fraction;
  }

 private:
  static RegexId behind(RegexSet& regexes, std::string_view number) {
    RegexId rest = json_number_equal_to(regexes, number);
    for (const char byte : number) rest = regexes.derivative(rest, static_cast<uint8_t>(byte));
    return rest;
  }
};

// The numbers are sorted texts that have the first `num_read` bytes in common, which have been
// read.
RegexId any_of_digits(RegexSet& regexes, const DecimalTails& tails,
                      std::span<const std::string> numbers, size_t num_read) {
  std::vector<RegexId> options;
  if (numbers[0].size() == num_read) {
    options.push_back(tails.of(numbers[0]));
    numbers = numbers.subspan(1);
  }
  while (!numbers.empty()) {
    const char byte = numbers[0][num_read];
    size_t count = 1;
    while (count < numbers.size() && numbers[count][num_read] == byte) ++count;
    options.push_back(
        regexes.concat(regexes.byte(static_cast<uint8_t>(byte)),
                       any_of_digits(regexes, tails, numbers.subspan(0, count), num_read + 1)));
    numbers = numbers.subspan(count);
  }
  return regexes.alternation(options);
}

// The numbers are sorted texts.
RegexId any_of_numbers(RegexSet& regexes, std::vector<std::string> numbers, Zeros zeros) {
  std::vector<RegexId> options;
  if (std::erase(numbers, "0") > 0) options.push_back(zero(regexes, zeros));
  if (!numbers.empty()) {
    options.push_back(any_of_digits(regexes, DecimalTails(regexes, zeros), numbers, 0));
  }
  return regexes.alternation(options);
}

RegexId texts_with_point(RegexSet& regexes) {
  return regexes.concat(std::array{RegexSet::kAll, regexes.byte('.'), RegexSet::kAll});
}

bool has_whole_divisor(const SchemaNumberRules& rules) {
  return std::any_of(rules.multiples.begin(), rules.multiples.end(),
                     [](const std::string& divisor) { return divisor.find('.') == divisor.npos; });
}

RegexId number_rules_without_values(SchemaScalars& scalars, const SchemaNumberRules& rules) {
  RegexSet& regexes = scalars.regexes();
  std::vector<RegexId> parts;
  if (rules.minimum || rules.maximum) {
    JsonNumberRange range;
    if (rules.minimum) range.min = rules.minimum->decimal;
    if (rules.maximum) range.max = rules.maximum->decimal;
    range.excludes_min = rules.minimum && rules.minimum->is_excluded;
    range.excludes_max = rules.maximum && rules.maximum->is_excluded;
    parts.push_back(json_decimals_between(regexes, range));
  }
  const bool is_whole = rules.integers_only || has_whole_divisor(rules);
  const bool is_digits = is_whole && !rules.has_point && scalars.texts() == JsonTexts::written;
  if (is_digits || rules.no_points) {
    parts.push_back(scalars.digits());
  } else if (rules.integers_only) {
    parts.push_back(scalars.integer());
  }
  if (parts.empty()) parts.push_back(scalars.decimal());
  for (const std::string& divisor : rules.multiples) {
    parts.push_back(json_multiples_of(regexes, divisor));
  }
  for (const std::string& divisor : rules.non_multiples) {
    parts.push_back(regexes.complement(json_multiples_of(regexes, divisor)));
  }
  if (!rules.non_multiples.empty() && !rules.has_point && scalars.texts() == JsonTexts::written) {
    // 3.00 is in no language of multiples.
    parts.push_back(regexes.alternation(scalars.digits(), regexes.complement(scalars.integer())));
  }
  if (rules.has_point) parts.push_back(texts_with_point(regexes));
  if (rules.fractions_only) parts.push_back(regexes.complement(scalars.integer()));
  if (!rules.excluded.empty()) {
    parts.push_back(regexes.complement(any_of_numbers(regexes, rules.excluded, Zeros::any)));
  }
  return regexes.intersection(parts);
}

size_t common_prefix(std::string_view first, std::string_view last) {
  const auto [a, b] = std::mismatch(first.begin(), first.end(), last.begin(), last.end());
  auto length = static_cast<size_t>(a - first.begin());
  // Characters stay whole.
  while (length > 0 && length < first.size() && (first[length] & 0xC0) == 0x80) --length;
  while (length > 0 && length < last.size() && (last[length] & 0xC0) == 0x80) --length;
  return length;
}

// `skipped` bytes of each have been read.
RegexId any_of_tails(RegexSet& regexes, std::span<const std::string_view> texts, size_t skipped,
                     TextForm form) {
  if (texts.size() == 1) return literal_text(regexes, texts[0].substr(skipped), form);
  const size_t common = common_prefix(texts.front().substr(skipped), texts.back().substr(skipped));
  const RegexId head = literal_text(regexes, texts[0].substr(skipped, common), form);
  skipped += common;
  std::vector<RegexId> options;
  if (texts.front().size() == skipped) {
    options.push_back(RegexSet::kEmpty);
    texts = texts.subspan(1);
  }
  while (!texts.empty()) {
    const auto character_of = [&](std::string_view text) {
      return text.substr(skipped, decode_utf8(text.substr(skipped)).size);
    };
    size_t count = 1;
    const std::string_view first = character_of(texts[0]);
    while (count < texts.size() && character_of(texts[count]) == first) ++count;
    options.push_back(any_of_tails(regexes, texts.subspan(0, count), skipped, form));
    texts = texts.subspan(count);
  }
  return regexes.concat(head, regexes.alternation(options));
}

}  // namespace

RegexId SchemaScalars::character() {
  if (!character_) character_ = any_character(regexes_, form_);
  return *character_;
}

RegexId SchemaScalars::string() {
  if (!string_) string_ = json_string(regexes_);
  return *string_;
}

RegexId SchemaScalars::number() {
  if (!number_) number_ = json_number(regexes_);
  return *number_;
}

RegexId SchemaScalars::decimal() {
  if (!decimal_) decimal_ = json_decimal(regexes_);
  return *decimal_;
}

RegexId SchemaScalars::integer() {
  if (!integer_) integer_ = json_integer(regexes_);
  return *integer_;
}

RegexId SchemaScalars::digits() {
  if (!digits_) digits_ = json_digits(regexes_);
  return *digits_;
}

RegexId schema_any_of_texts(RegexSet& regexes, std::span<const std::string_view> texts,
                            TextForm form) {
  return texts.empty() ? RegexSet::kNothing : any_of_tails(regexes, texts, 0, form);
}

std::string schema_string_body(std::string_view text, TextForm form) {
  if (form == TextForm::utf8) return std::string(text);
  const std::string quoted = json_quote(text);
  return quoted.substr(1, quoted.size() - 2);
}

RegexId schema_number_language(SchemaScalars& scalars, const SchemaNumberRules& rules) {
  RegexSet& regexes = scalars.regexes();
  if (rules.is_any()) return scalars.number();
  if (!rules.values) return number_rules_without_values(scalars, rules);
  SchemaNumberRules others = rules;
  others.values.reset();
  others.no_points = others.has_point = false;
  std::vector<std::string> values = *rules.values;
  if (!others.is_any()) {
    const RegexId allowed = number_rules_without_values(scalars, others);
    std::erase_if(values,
                  [&](const std::string& value) { return !regexes.matches(allowed, value); });
  }
  const bool has_one_text = scalars.texts() == JsonTexts::written && !rules.has_point;
  const RegexId language = any_of_numbers(regexes, values, has_one_text ? Zeros::none : Zeros::any);
  if (!rules.no_points && !rules.has_point) return language;
  const RegexId points = texts_with_point(regexes);
  return regexes.intersection(language, rules.no_points ? regexes.complement(points) : points);
}

RegexId schema_string_language(SchemaScalars& scalars, const SchemaStringRules& rules) {
  RegexSet& regexes = scalars.regexes();
  const bool has_length = rules.min_length > 0 || rules.max_length != kUnbounded;
  const bool is_free =
      !has_length && rules.all.empty() && rules.none.empty() && rules.excluded.empty();
  const TextForm form = scalars.form();
  if (rules.values && is_free) return schema_any_of_texts(regexes, *rules.values, form);
  std::vector<RegexId> parts = rules.all;
  if (parts.size() == 1 && has_length) {
    parts[0] =
        regexes.with_length(parts[0], scalars.character(), rules.min_length, rules.max_length);
  } else if (has_length || parts.empty()) {
    parts.push_back(regexes.repeat(scalars.character(), rules.min_length, rules.max_length));
  }
  for (const RegexId none : rules.none) parts.push_back(regexes.complement(none));
  if (!rules.excluded.empty()) {
    parts.push_back(regexes.complement(schema_any_of_texts(regexes, rules.excluded, form)));
  }
  const RegexId allowed = regexes.intersection(parts);
  if (!rules.values) return allowed;
  std::vector<std::string_view> values = *rules.values;
  std::erase_if(values, [&](std::string_view value) {
    return !regexes.matches(allowed, schema_string_body(value, form));
  });
  return schema_any_of_texts(regexes, values, form);
}

}  // namespace paceline
