#include "chat/python_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "chat/python_string.h"
#include "chat/python_text.h"
#include "chat/template_convert.h"

namespace paceline {
namespace {

constexpr int64_t kMaxWidth = 100'000;
constexpr int kMaxPrecision = 1000;

// How one value is to be written, in either language.
struct Spec {
  std::string fill = " ";
  char alignment = '\0';  // < > ^ or =
  char sign = '-';
  bool alternate = false;
  bool zero = false;
  int64_t width = 0;
  char grouping = '\0';
  std::optional<int> precision = {};
  char type = '\0';
};

std::string grouped(std::string digits, char separator, size_t group) {
  const size_t end = std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
  for (size_t i = end; i > group; i -= group) digits.insert(i - group, 1, separator);
  return digits;
}

std::string with_sign(bool is_negative, char sign, std::string digits) {
  if (is_negative) return "-" + digits;
  if (sign == '+' || sign == ' ') return sign + digits;
  return digits;
}

std::string printf_double(double value, int precision, char type, bool alternate) {
  const std::string format = fmt::format("%{}.*{}", alternate ? "#" : "", type);
  const int size = std::snprintf(nullptr, 0, format.c_str(), precision, value);
  std::string text(static_cast<size_t>(size), '\0');
  std::snprintf(text.data(), text.size() + 1, format.c_str(), precision, value);
  return text;
}

// Digits of a float without its sign.
std::string float_digits(double value, const Spec& spec) {
  const double magnitude = std::fabs(value);
  if (std::isnan(value))
    return spec.type == 'F' || spec.type == 'E' || spec.type == 'G' ? "NAN" : "nan";
  if (std::isinf(value))
    return spec.type == 'F' || spec.type == 'E' || spec.type == 'G' ? "INF" : "inf";
  if (spec.type == '%')
    return printf_double(magnitude * 100, spec.precision.value_or(6), 'f', spec.alternate) + "%";
  if (spec.type == '\0' || spec.type == 'n') {
    if (!spec.precision) return float_repr(magnitude);
    std::string text = printf_double(magnitude, std::max(*spec.precision, 1), 'g', spec.alternate);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
  }
  return printf_double(magnitude, spec.precision.value_or(6), spec.type, spec.alternate);
}

std::string integer_digits(uint64_t magnitude, const Spec& spec) {
  switch (spec.type) {
    case 'x':
      return (spec.alternate ? "0x" : "") + fmt::format("{:x}", magnitude);
    case 'X':
      return (spec.alternate ? "0X" : "") + fmt::format("{:X}", magnitude);
    case 'o':
      return (spec.alternate ? "0o" : "") + fmt::format("{:o}", magnitude);
    case 'b':
      return (spec.alternate ? "0b" : "") + fmt::format("{:b}", magnitude);
    default:
      return fmt::format("{}", magnitude);
  }
}

// Aligned in its width; zeros go between the sign and the digits.
std::string aligned(TemplateRuntime& runtime, const std::string& text, const Spec& spec,
                    char by_default) {
  const char alignment = spec.alignment != '\0' ? spec.alignment : by_default;
  const std::string fill = spec.zero && spec.alignment == '\0' ? "0" : spec.fill;
  if (alignment == '=') {
    size_t prefix =
        !text.empty() && std::string_view("+- ").find(text[0]) != std::string_view::npos ? 1 : 0;
    if (spec.alternate && text.size() > prefix + 1 && text[prefix] == '0' &&
        std::string_view("xXob").find(text[prefix + 1]) != std::string_view::npos) {
      prefix += 2;
    }
    return text.substr(0, prefix) + padded(runtime, text.substr(prefix),
                                           spec.width - static_cast<int64_t>(prefix), fill,
                                           Alignment::right);
  }
  return padded(runtime, text, spec.width, fill,
                alignment == '<'   ? Alignment::left
                : alignment == '^' ? Alignment::center
                                   : Alignment::right);
}

std::string number_text(TemplateRuntime& runtime, const TemplateValue& value, const Spec& spec,
                        bool as_integer) {
  std::string digits;
  bool is_negative = false;
  if (as_integer) {
    int64_t number = value.is_float() ? 0 : value.integer();
    if (value.is_float()) {
      constexpr double kBeyond = 9.2e18;
      if (!(std::fabs(value.real()) < kBeyond)) throw TemplateError("an integer beyond 64 bits");
      number = static_cast<int64_t>(value.real());
    }
    is_negative = number < 0;
    digits = integer_digits(
        is_negative ? ~static_cast<uint64_t>(number) + 1 : static_cast<uint64_t>(number), spec);
    if (spec.precision && static_cast<int64_t>(digits.size()) < *spec.precision) {
      digits.insert(0, static_cast<size_t>(*spec.precision) - digits.size(), '0');
    }
  } else {
    is_negative = std::signbit(value.real()) && !std::isnan(value.real());
    digits = float_digits(value.real(), spec);
  }
  if (spec.grouping != '\0') {
    const bool by_four =
        spec.type == 'x' || spec.type == 'X' || spec.type == 'o' || spec.type == 'b';
    digits = grouped(std::move(digits), spec.grouping, by_four ? 4 : 3);
  }
  return aligned(runtime, with_sign(is_negative, spec.sign, std::move(digits)), spec,
                 spec.zero ? '=' : '>');
}

std::string string_text(TemplateRuntime& runtime, std::string text, const Spec& spec) {
  if (spec.precision && length_of(text) > *spec.precision) {
    std::string cut;
    const auto characters = characters_of(text);
    for (int i = 0; i < *spec.precision; ++i) cut += characters[static_cast<size_t>(i)];
    text = std::move(cut);
  }
  return aligned(runtime, text, spec, '<');
}

// Walks a format's characters.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}
  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  char take() { return at_end() ? '\0' : text_[at_++]; }
  bool take_if(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  std::string_view take_until(std::string_view ends) {
    const size_t end = std::min(text_.find_first_of(ends, at_), text_.size());
    const std::string_view part = text_.substr(at_, end - at_);
    at_ = end;
    return part;
  }
  std::optional<int64_t> take_number() {
    if (peek() < '0' || peek() > '9') return std::nullopt;
    int64_t value = 0;
    while (peek() >= '0' && peek() <= '9')
      value = std::min(value * 10 + (take() - '0'), int64_t{1} << 40);
    return value;
  }
  std::string_view rest() const { return text_.substr(at_); }
  void skip(size_t bytes) { at_ += bytes; }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

int checked_precision(int64_t precision) {
  if (precision > kMaxPrecision)
    throw TemplateError("a precision beyond 1000", ErrorCode::exhausted);
  return static_cast<int>(precision);
}

// The values of a % format, in order or by name.
class PercentValues {
 public:
  explicit PercentValues(const TemplateValue& values) : values_(values) {}

  TemplateValue next() {
    if (!values_.is_tuple()) {
      if (next_++ > 0) throw TemplateError("not enough arguments for format string");
      return values_;
    }
    if (next_ >= values_.items().size())
      throw TemplateError("not enough arguments for format string");
    return values_.items()[next_++];
  }
  TemplateValue named(std::string_view name) {
    if (!values_.is_mapping()) throw TemplateError("format requires a mapping");
    by_name_ = true;
    const TemplateValue* value = values_.members().find(name);
    if (value == nullptr) throw TemplateError(fmt::format("'{}'", name));
    return *value;
  }
  void finish() const {
    const size_t given = values_.is_tuple() ? values_.items().size() : 1;
    // A list counts as a mapping here, as in CPython.
    const bool may_be_left =
        values_.is_mapping() || (values_.is_sequence() && !values_.is_tuple()) || by_name_;
    if (next_ < given && !may_be_left) {
      throw TemplateError("not all arguments converted during string formatting");
    }
  }

 private:
  const TemplateValue& values_;
  size_t next_ = 0;
  bool by_name_ = false;
};

std::string percent_conversion(TemplateRuntime& runtime, Cursor& cursor, PercentValues& values) {
  std::optional<TemplateValue> named;
  if (cursor.take_if('(')) {
    named = values.named(cursor.take_until(")"));
    if (!cursor.take_if(')')) throw TemplateError("incomplete format key");
  }
  Spec spec;
  bool is_left = false;
  for (bool is_flag = true; is_flag;) {
    switch (cursor.peek()) {
      case '-':
        is_left = true;
        break;
      case '+':
        spec.sign = '+';
        break;
      case ' ':
        if (spec.sign != '+') spec.sign = ' ';
        break;
      case '#':
        spec.alternate = true;
        break;
      case '0':
        spec.zero = true;
        break;
      default:
        is_flag = false;
    }
    if (is_flag) cursor.take();
  }
  const auto number_or_star = [&]() -> std::optional<int64_t> {
    if (!cursor.take_if('*')) return cursor.take_number();
    const TemplateValue value = values.next();
    if (!value.is_integral()) throw TemplateError("* wants int");
    return value.integer();
  };
  spec.width = number_or_star().value_or(0);
  if (spec.width < 0) {
    is_left = true;
    spec.width = -spec.width;
  }
  if (cursor.take_if('.'))
    spec.precision = checked_precision(std::max<int64_t>(number_or_star().value_or(0), 0));
  while (cursor.peek() == 'l' || cursor.peek() == 'h' || cursor.peek() == 'L') cursor.take();
  const char type = cursor.take();
  if (type == '%') return "%";
  if (type == '\0') throw TemplateError("incomplete format");
  const TemplateValue value = named ? *named : values.next();
  if (type == 's' || type == 'r' || type == 'a') {
    spec.zero = false;
    std::string text;
    type == 's' ? append_str(text, value, runtime.limits().output_bytes)
                : append_repr(text, value, runtime.limits().output_bytes);
    spec.alignment = is_left ? '<' : '>';
    return string_text(runtime, std::move(text), spec);
  }
  if (is_left) spec.alignment = '<';
  require_defined(value);
  if (type == 'c') {
    if (value.is_string() && length_of(value.text()) == 1)
      return string_text(runtime, value.text(), spec);
    throw TemplateError("%c requires int or char");
  }
  if (!value.is_number()) {
    throw TemplateError(
        fmt::format("%{} format: a real number is required, not {}", type, value.type_name()));
  }
  const bool as_integer = std::string_view("diuxXo").find(type) != std::string_view::npos;
  if (!as_integer && std::string_view("eEfFgG").find(type) == std::string_view::npos) {
    throw TemplateError(fmt::format("unsupported format character '{}'", type));
  }
  spec.type = type == 'i' || type == 'u' ? 'd' : type;
  return number_text(runtime, value, spec, as_integer);
}

Spec parse_spec(std::string_view text) {
  Spec spec;
  Cursor cursor(text);
  const auto characters = characters_of(text);
  const auto is_alignment = [](std::string_view c) {
    return c == "<" || c == ">" || c == "^" || c == "=";
  };
  if (characters.size() > 1 && is_alignment(characters[1])) {
    spec.fill = characters[0];
    cursor.skip(characters[0].size());
    spec.alignment = cursor.take();
  } else if (!characters.empty() && is_alignment(characters[0])) {
    spec.alignment = cursor.take();
  }
  if (cursor.peek() == '+' || cursor.peek() == '-' || cursor.peek() == ' ')
    spec.sign = cursor.take();
  spec.alternate = cursor.take_if('#');
  spec.zero = cursor.take_if('0');
  spec.width = cursor.take_number().value_or(0);
  if (cursor.peek() == ',' || cursor.peek() == '_') spec.grouping = cursor.take();
  if (cursor.take_if('.')) {
    const auto precision = cursor.take_number();
    if (!precision) throw TemplateError("Format specifier missing precision");
    spec.precision = checked_precision(*precision);
  }
  spec.type = cursor.take();
  if (!cursor.at_end()) throw TemplateError(fmt::format("Invalid format specifier '{}'", text));
  return spec;
}

std::string formatted(TemplateRuntime& runtime, const TemplateValue& value, std::string_view text) {
  if (text.empty()) return to_text(runtime, value);
  const Spec spec = parse_spec(text);
  const auto unknown = [&]() {
    return TemplateError(fmt::format("Unknown format code '{}' for object of type '{}'", spec.type,
                                     value.type_name()));
  };
  if (value.is_string()) {
    if (spec.type != '\0' && spec.type != 's') throw unknown();
    return string_text(runtime, value.text(), spec);
  }
  require_defined(value);
  if (!value.is_number()) {
    throw TemplateError(
        fmt::format("unsupported format string passed to {}.__format__", value.type_name()));
  }
  const bool wants_integer =
      std::string_view("dxXob").find(spec.type) != std::string_view::npos && spec.type != '\0';
  const bool wants_float =
      std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos && spec.type != '\0';
  if (spec.type != '\0' && spec.type != 'n' && !wants_integer && !wants_float) throw unknown();
  if (wants_integer && value.is_float()) throw unknown();
  if (value.is_bool() && spec.type == '\0') {
    Spec of_text = spec;
    return aligned(runtime, value.as_bool() ? "1" : "0", of_text, '>');
  }
  return number_text(runtime, value, spec, !value.is_float() && !wants_float);
}

// Numbers the fields of a brace format.
class FieldValues {
 public:
  explicit FieldValues(const TemplateArguments& arguments) : arguments_(arguments) {}

  TemplateValue value_of(std::string_view name) {
    if (name.find_first_of(".[") != std::string_view::npos) {
      throw TemplateError("attributes and items in format fields aren't supported",
                          ErrorCode::unsupported);
    }
    if (name.empty()) return positional(next_++);
    if (const auto number = parse_int(name, 10); number && name[0] >= '0' && name[0] <= '9') {
      return positional(static_cast<size_t>(*number));
    }
    for (const auto& [known, value] : arguments_.named) {
      if (known == name) return value;
    }
    throw TemplateError(fmt::format("format has no argument '{}'", name));
  }

 private:
  TemplateValue positional(size_t index) const {
    if (index >= arguments_.positional.size()) {
      throw TemplateError(
          fmt::format("Replacement index {} out of range for positional args tuple", index));
    }
    return arguments_.positional[index];
  }

  const TemplateArguments& arguments_;
  size_t next_ = 0;
};

std::string brace_field(TemplateRuntime& runtime, Cursor& cursor, FieldValues& values) {
  const std::string_view name = cursor.take_until("!:{}");
  TemplateValue value = values.value_of(name);
  if (cursor.take_if('!')) {
    const char conversion = cursor.take();
    std::string text;
    if (conversion != 's' && conversion != 'r') throw TemplateError("Unknown conversion specifier");
    conversion == 's' ? append_str(text, value, runtime.limits().output_bytes)
                      : append_repr(text, value, runtime.limits().output_bytes);
    value = TemplateValue(std::move(text));
  }
  std::string spec;
  if (cursor.take_if(':')) {
    spec = cursor.take_until("{}");
    while (cursor.take_if('{')) {
      spec += to_text(runtime, values.value_of(cursor.take_until("}")));
      if (!cursor.take_if('}')) throw TemplateError("expected '}' before end of string");
      spec += cursor.take_until("{}");
    }
  }
  if (!cursor.take_if('}')) throw TemplateError("expected '}' before end of string");
  return formatted(runtime, value, spec);
}

}  // namespace

std::string padded(TemplateRuntime& runtime, std::string_view text, int64_t width,
                   std::string_view fill, Alignment alignment) {
  const int64_t missing = std::max<int64_t>(width - length_of(text), 0);
  if (missing > kMaxWidth)
    throw TemplateError("a width beyond 100,000 characters", ErrorCode::exhausted);
  runtime.charge(text.size() + static_cast<size_t>(missing) * fill.size());
  // Python's str.center puts the odd blank on the left where the width is odd.
  const int64_t left = alignment == Alignment::left    ? 0
                       : alignment == Alignment::right ? missing
                                                       : missing / 2 + (missing & width & 1);
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += text;
  for (int64_t i = left; i < missing; ++i) out += fill;
  return out;
}

std::string format_percent(TemplateRuntime& runtime, std::string_view format,
                           const TemplateValue& values) {
  std::string out;
  Cursor cursor(format);
  PercentValues of_format(values);
  while (!cursor.at_end()) {
    out += cursor.take_until("%");
    if (cursor.take_if('%')) out += percent_conversion(runtime, cursor, of_format);
    runtime.charge(out.size() / 64);
  }
  of_format.finish();
  return out;
}

std::string format_braces(TemplateRuntime& runtime, std::string_view format,
                          const TemplateArguments& arguments) {
  std::string out;
  Cursor cursor(format);
  FieldValues values(arguments);
  while (!cursor.at_end()) {
    out += cursor.take_until("{}");
    if (cursor.at_end()) break;
    const char brace = cursor.take();
    if (cursor.take_if(brace)) {
      out.push_back(brace);
    } else if (brace == '}') {
      throw TemplateError("Single '}' encountered in format string");
    } else {
      out += brace_field(runtime, cursor, values);
    }
    runtime.charge(out.size() / 64);
  }
  return out;
}

}  // namespace paceline
