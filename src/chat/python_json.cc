#include "chat/python_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "chat/python_text.h"
#include "chat/template_compare.h"
#include "chat/template_error.h"

namespace paceline {
namespace {

using Member = TemplateMapping::Member;

class Writer {
 public:
  Writer(const PythonJsonOptions& options, size_t limit) : options_(options), limit_(limit) {}

  void write(const TemplateValue& value) {
    check_limit();
    if (value.is_string()) {
      write_string(value.text());
    } else if (value.is_sequence()) {
      write_items(value.items());
    } else if (value.is_mapping()) {
      write_members(value.members());
    } else if (value.is_none() || value.is_number()) {
      out_ += scalar(value);
    } else {
      throw TemplateError("Object of type {} is not JSON serializable", value.type_name());
    }
  }

  std::string take() {
    check_limit();
    return std::move(out_);
  }

 private:
  void check_limit() const {
    if (out_.size() > limit_) {
      throw TemplateError(fmt::format("tojson makes a text of more than {} bytes", limit_),
                          ErrorCode::exhausted);
    }
  }

  static std::string scalar(const TemplateValue& value) {
    if (value.is_none()) return "null";
    if (value.is_bool()) return value.as_bool() ? "true" : "false";
    if (value.is_int()) return fmt::format("{}", value.integer());
    if (std::isnan(value.real())) return "NaN";
    if (std::isinf(value.real())) return value.real() < 0 ? "-Infinity" : "Infinity";
    return float_repr(value.real());
  }

  void write_escape(char32_t code_point) {
    constexpr std::u32string_view kEscaped = U"\"\\\n\r\t\f\b";
    constexpr std::string_view kLetters = "\"\\nrtfb";
    const size_t at = kEscaped.find(code_point);
    if (at != std::u32string_view::npos) {
      out_ += '\\';
      out_ += kLetters[at];
      return;
    }
    const auto unit = [&](uint32_t number) { out_ += fmt::format("\\u{:04x}", number); };
    const auto number = static_cast<uint32_t>(code_point);
    if (number < 0x10000) return unit(number);
    unit(0xD800 + ((number - 0x10000) >> 10));
    unit(0xDC00 + ((number - 0x10000) & 0x3FF));
  }

  void write_string(std::string_view text) {
    out_.push_back('"');
    while (!text.empty()) {
      const DecodedCodePoint here = decode_utf8(text);
      const char32_t c = here.code_point;
      if (c == U'"' || c == U'\\' || c < U' ' ||
          (options_.ensure_ascii && c >= 0x7F && c != 0x7F)) {
        write_escape(c);
      } else {
        out_ += text.substr(0, here.size);
      }
      text.remove_prefix(here.size);
    }
    out_.push_back('"');
  }

  void new_line() {
    if (!options_.indent) return;
    out_.push_back('\n');
    for (size_t i = 0; i < level_; ++i) out_ += *options_.indent;
    check_limit();
  }

  // Writes brackets and `count` items, each by `write_one`.
  template <class WriteOne>
  void write_all(char open, char close, size_t count, WriteOne&& write_one) {
    out_.push_back(open);
    if (count > 0) {
      ++level_;
      for (size_t i = 0; i < count; ++i) {
        if (i > 0) out_ += options_.item_separator.value_or(options_.indent ? "," : ", ");
        new_line();
        write_one(i);
      }
      --level_;
      new_line();
    }
    out_.push_back(close);
  }

  void write_items(const TemplateValues& items) {
    write_all('[', ']', items.size(), [&](size_t i) { write(items[i]); });
  }

  void write_members(const TemplateMapping& mapping) {
    std::vector<const Member*> members;
    for (const Member& member : mapping.members()) members.push_back(&member);
    if (options_.sort_keys) {
      std::stable_sort(members.begin(), members.end(),
                       [](const Member* a, const Member* b) { return less(a->first, b->first); });
    }
    write_all('{', '}', members.size(), [&](size_t i) {
      const TemplateValue& key = members[i]->first;
      if (!key.is_string() && !key.is_none() && !key.is_number()) {
        throw TemplateError("keys must be str, int, float, bool or None, not {}", key.type_name());
      }
      write_string(key.is_string() ? key.text() : scalar(key));
      out_ += options_.key_separator;
      write(members[i]->second);
    });
  }

  const PythonJsonOptions& options_;
  size_t limit_;
  size_t level_ = 0;
  std::string out_;
};

}  // namespace

std::string python_json(const TemplateValue& value, const PythonJsonOptions& options,
                        size_t limit) {
  Writer writer(options, limit);
  writer.write(value);
  return writer.take();
}

}  // namespace paceline
