// "{}".format(x), by the documentation of Python's format strings.
#include <fmt/format.h>

#include <optional>

#include "chat/format_cursor.h"
#include "chat/python_case.h"
#include "chat/python_format.h"
#include "chat/python_format_spec.h"
#include "chat/python_text.h"
#include "chat/python_value_format.h"
#include "chat/template_convert.h"

namespace paceline {
namespace {

// The values of the fields: either all have explicit numbers, or all are numbered in order.
class FieldValues {
 public:
  FieldValues(TemplateRuntime& runtime, const TemplateArguments& arguments)
      : runtime_(runtime), arguments_(arguments) {}

  // name.attribute[item]
  TemplateValue find(std::string_view field) {
    FormatCursor path(field);
    TemplateValue value = first(path.take_until(".["), field);
    while (!path.at_end()) {
      if (path.take() == '.') {
        value = attribute_of(runtime_, value, part(path.take_until(".[")));
        continue;
      }
      const std::string key = part(path.take_until("]"));
      if (!path.take_if(']')) throw TemplateError("Missing ']' in format string");
      if (!path.at_end() && path.peek() != '.' && path.peek() != '[') {
        throw TemplateError("Only '.' or '[' may follow ']' in format field specifier");
      }
      const auto index = number(key);
      value = item_of(runtime_, value, index ? TemplateValue(*index) : TemplateValue(key));
    }
    return value;
  }

 private:
  TemplateValue first(std::string_view name, std::string_view field) {
    const auto index = number(name);
    if (field.empty()) {
      number_as(Numbering::automatic);
      return positional(next_++);
    }
    if (index) {
      if (name == field) number_as(Numbering::manual);  // 0.a counts as neither
      return positional(static_cast<size_t>(*index));
    }
    for (const auto& [known, value] : arguments_.named) {
      if (known == name) return value;
    }
    throw TemplateError(fmt::format("format has no argument '{}'", name));
  }

  enum class Numbering { automatic, manual };

  void number_as(Numbering wanted) {
    if (numbering_.value_or(wanted) != wanted) {
      throw TemplateError("cannot switch between automatic and manual field numbering");
    }
    numbering_ = wanted;
  }

  TemplateValue positional(size_t index) const {
    if (index < arguments_.positional.size()) return arguments_.positional[index];
    throw TemplateError(
        fmt::format("Replacement index {} out of range for positional args tuple", index));
  }

  static std::string part(std::string_view name) {
    if (name.empty()) throw TemplateError("Empty attribute in format string");
    return std::string(name);
  }

  static std::optional<int64_t> number(std::string_view name) {
    FormatCursor digits(name);
    const auto value = digits.take_number();
    return digits.at_end() ? value : std::nullopt;
  }

  TemplateRuntime& runtime_;
  const TemplateArguments& arguments_;
  std::optional<Numbering> numbering_;
  size_t next_ = 0;
};

class BraceFormat {
 public:
  BraceFormat(TemplateRuntime& runtime, const TemplateArguments& arguments)
      : runtime_(runtime), values_(runtime, arguments) {}

  // Specifications may contain fields, one level deep.
  std::string fill(std::string_view text, int levels) {
    if (levels < 0) throw TemplateError("Max string recursion exceeded");
    std::string out;
    FormatCursor format(text);
    while (!format.at_end()) {
      out += format.take_until("{}");
      if (format.at_end()) break;
      const char brace = format.take();
      if (format.take_if(brace)) {
        out.push_back(brace);
      } else if (brace == '}') {
        throw TemplateError("Single '}' encountered in format string");
      } else {
        out += field(format, levels);
      }
      runtime_.charge(out.size() / 64);
    }
    return out;
  }

 private:
  std::string field(FormatCursor& format, int levels) {
    if (format.at_end()) throw TemplateError("Single '{' encountered in format string");
    TemplateValue value = values_.find(name(format));
    if (format.take_if('!')) value = converted(format.take(), value);
    std::string spec;
    if (format.take_if(':')) spec = fill(specification(format), levels - 1);
    if (!format.take_if('}')) throw TemplateError("expected '}' before end of string");
    return format_value(runtime_, value, spec);
  }

  // Up to ! or : outside of [].
  static std::string name(FormatCursor& format) {
    std::string name(format.take_until("!:{}["));
    while (format.peek() == '[') {
      name += format.take_until("]");
      name += format.take_until("!:{}[");
    }
    if (format.peek() == '{') throw TemplateError("unexpected '{' in field name");
    return name;
  }

  // Up to the brace that closes the field.
  static std::string specification(FormatCursor& format) {
    std::string spec;
    for (int open = 0;;) {
      spec += format.take_until("{}");
      if (format.at_end() || (format.peek() == '}' && open == 0)) return spec;
      open += format.peek() == '{' ? 1 : -1;
      spec += format.take();
    }
  }

  TemplateValue converted(char conversion, const TemplateValue& value) {
    std::string text;
    const size_t limit = runtime_.limits().output_bytes;
    switch (conversion) {
      case 's':
        append_str(text, value, limit);
        break;
      case 'r':
        append_repr(text, value, limit);
        break;
      case 'a':
        append_ascii(text, value, limit);
        break;
      default:
        throw TemplateError("Unknown conversion specifier");
    }
    return TemplateValue(std::move(text));
  }

  TemplateRuntime& runtime_;
  FieldValues values_;
};

}  // namespace

std::string format_braces(TemplateRuntime& runtime, std::string_view format,
                          const TemplateArguments& arguments) {
  return BraceFormat(runtime, arguments).fill(format, 1);
}

}  // namespace paceline
