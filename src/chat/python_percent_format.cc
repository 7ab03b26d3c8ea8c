// "%s" % x, as the documentation of Python's printf-style formatting has it.
#include <fmt/format.h>

#include <optional>

#include "chat/format_cursor.h"
#include "chat/python_format.h"
#include "chat/python_format_spec.h"
#include "chat/python_number.h"
#include "chat/python_string.h"
#include "chat/python_text.h"
#include "chat/template_convert.h"

namespace paceline {
namespace {

// The values of a format, in order or by name.
class Values {
 public:
  explicit Values(const TemplateValue& values) : values_(values) {}

  const TemplateValue& next() {
    const size_t given = values_.is_tuple() ? values_.items().size() : 1;
    if (next_ >= given) throw TemplateError("not enough arguments for format string");
    const size_t index = next_++;
    return values_.is_tuple() ? values_.items()[index] : values_;
  }
  const TemplateValue& named(std::string_view name) {
    if (!values_.is_mapping()) throw TemplateError("format requires a mapping");
    const TemplateValue* value = values_.members().find(name);
    if (value == nullptr) throw TemplateError(fmt::format("'{}'", name));
    next_ = 1;  // no value is left to take in order
    return *value;
  }
  void finish() const {
    const size_t given = values_.is_tuple() ? values_.items().size() : 1;
    // A value with subscripts counts as a mapping here, as in CPython.
    const bool may_be_left = values_.is_mapping() || values_.is_undefined() ||
                             (values_.is_sequence() && !values_.is_tuple());
    if (next_ < given && !may_be_left) {
      throw TemplateError("not all arguments converted during string formatting");
    }
  }

 private:
  const TemplateValue& values_;
  size_t next_ = 0;
};

class PercentFormat {
 public:
  PercentFormat(TemplateRuntime& runtime, std::string_view format, const TemplateValue& values)
      : runtime_(runtime), format_(format), values_(values) {}

  std::string run() {
    std::string out;
    while (!format_.at_end()) {
      out += format_.take_until("%");
      if (format_.take_if('%')) out += format_.take_if('%') ? "%" : conversion();
      runtime_.charge(out.size() / 64);
    }
    values_.finish();
    return out;
  }

 private:
  std::string conversion() {
    const TemplateValue* named = nullptr;
    if (format_.take_if('(')) named = &values_.named(key());
    FormatSpec spec;
    const bool fills_with_zeros = read_flags(spec);
    read_width(spec);
    if (format_.take_if('.')) {
      spec.precision = std::max<int64_t>(number_or_star().value_or(0), 0);
    }
    format_.take_any("hlL");  // a length, without a meaning
    if (format_.at_end()) throw TemplateError("incomplete format");
    spec.type = format_.take();
    const TemplateValue& value = named != nullptr ? *named : values_.next();
    if (is_one_of(spec.type, "srac")) return text(value, spec);
    if (fills_with_zeros && spec.alignment != '<') {
      spec.alignment = '=';
      spec.fill = "0";
    }
    return number(value, spec);
  }

  // The text in (), which may contain brackets.
  std::string key() {
    std::string name;
    for (int open = 1; open > 0;) {
      name += format_.take_until("()");
      if (format_.at_end()) throw TemplateError("incomplete format key");
      open += format_.peek() == '(' ? 1 : -1;
      name += format_.take();
    }
    name.pop_back();
    return name;
  }

  // Returns whether there is a 0.
  bool read_flags(FormatSpec& spec) {
    bool has_zero = false;
    spec.alignment = '>';
    while (const char flag = format_.take_any("-+ #0")) {
      if (flag == '-') spec.alignment = '<';
      if (flag == '+' || (flag == ' ' && spec.sign != '+')) spec.sign = flag;
      if (flag == '#') spec.is_alternate = true;
      if (flag == '0') has_zero = true;
    }
    return has_zero;
  }

  std::optional<int64_t> number_or_star() {
    if (!format_.take_if('*')) return format_.take_number();
    const TemplateValue& value = values_.next();
    if (!value.is_integral()) throw TemplateError("* wants int");
    return value.integer();
  }

  void read_width(FormatSpec& spec) {
    spec.width = number_or_star().value_or(0);
    if (spec.width >= 0) return;
    spec.alignment = '<';
    spec.width = spec.width == INT64_MIN ? INT64_MAX : -spec.width;
  }

  std::string text(const TemplateValue& value, FormatSpec spec) {
    if (spec.type == 'c') {
      spec.precision = std::nullopt;
      if (value.is_string() && length_of(value.text()) == 1) {
        return format_text(runtime_, value.text(), spec);
      }
      require_defined(value);
      if (!value.is_integral()) throw TemplateError("%c requires int or char");
      return format_text(runtime_, character_of(value.integer()), spec);
    }
    std::string text;
    const size_t limit = runtime_.limits().output_bytes;
    if (spec.type == 's') append_str(text, value, limit);
    if (spec.type == 'r') append_repr(text, value, limit);
    if (spec.type == 'a') append_ascii(text, value, limit);
    return format_text(runtime_, text, spec);
  }

  std::string number(const TemplateValue& value, FormatSpec& spec) {
    const char type = spec.type;
    if (!is_one_of(type, "diuxXoeEfFgG")) {
      throw TemplateError(fmt::format("unsupported format character '{}'", type));
    }
    require_defined(value);
    const bool needs_integer = is_one_of(type, "xXo");
    if (!value.is_number() || (needs_integer && value.is_float())) {
      throw TemplateError(fmt::format("%{} format: {} is required, not {}", type,
                                      needs_integer ? "an integer" : "a real number",
                                      value.type_name()));
    }
    if (is_one_of(type, "eEfFgG")) return format_real(runtime_, value.real(), spec);
    return format_integer(runtime_, value.is_float() ? truncated(value.real()) : value.integer(),
                          spec);
  }

  TemplateRuntime& runtime_;
  FormatCursor format_;
  Values values_;
};

}  // namespace

std::string format_percent(TemplateRuntime& runtime, std::string_view format,
                           const TemplateValue& values) {
  return PercentFormat(runtime, format, values).run();
}

}  // namespace paceline
