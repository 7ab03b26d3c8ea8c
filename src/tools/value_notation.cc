#include "tools/value_notation.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/json_writer.h"
#include "base/utf8.h"
#include "tools/text_units.h"

namespace paceline {
namespace {

constexpr int kMaxValueDepth = 64;
using Escapes = StringNotation::Escapes;

std::optional<Json> parsed(std::string_view text) {
  try {
    return parse_json(text, "value");
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<Json> scalar_of(std::string_view text, const ValueNotation& notation) {
  if (text == notation.true_text || text == "true" || text == "True") return Json(true);
  if (text == notation.false_text || text == "false" || text == "False") return Json(false);
  if (text == notation.null_text || text == "null" || text == "None") return Json();
  std::optional<Json> number = parsed(text);
  return number && number->is_number() ? number : std::nullopt;
}

// The hexadecimal number of `digits` digits at the beginning of `text`.
std::optional<char32_t> hex_number(std::string_view text, size_t digits) {
  uint32_t value = 0;
  if (text.size() < digits) return std::nullopt;
  const char* const end = text.data() + digits;
  const auto [read, error] = std::from_chars(text.data(), end, value, 16);
  if (error != std::errc() || read != end || value > 0x10FFFF) return std::nullopt;
  if (value >= 0xD800 && value <= 0xDFFF) return std::nullopt;
  return value;
}

// Appends what an escape of Python means; `text` begins behind the backslash and loses its bytes.
bool take_python_escape(std::string_view& text, std::string& out) {
  if (text.empty()) return false;
  const char kind = text.front();
  text.remove_prefix(1);
  constexpr std::string_view kLetters = "nrtabfv0";
  constexpr std::string_view kMeanings("\n\r\t\a\b\f\v\0", 8);
  if (const size_t at = kLetters.find(kind); at != std::string_view::npos) {
    out += kMeanings[at];
    return true;
  }
  const size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
  if (digits == 0) {
    if (kind != '\\' && kind != '\'' && kind != '"') out += '\\';
    out += kind;
    return true;
  }
  const std::optional<char32_t> code_point = hex_number(text, digits);
  if (!code_point) return false;
  append_utf8(out, *code_point);
  text.remove_prefix(digits);
  return true;
}

std::optional<std::string> without_python_escapes(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t at = std::min(text.find('\\'), text.size());
    out += text.substr(0, at);
    text.remove_prefix(at);
    if (text.empty()) break;
    text.remove_prefix(1);
    if (!take_python_escape(text, out)) return std::nullopt;
  }
  return out;
}

class ValueReader {
 public:
  ValueReader(std::string_view text, const ValueNotation& notation)
      : text_(text), notation_(notation) {}

  std::optional<Json> read_all() {
    std::optional<Json> value = read(0);
    return value && is_blank(text_) ? std::move(value) : std::nullopt;
  }

 private:
  void skip_blanks() { text_ = trimmed_left(text_); }
  bool take(std::string_view expected) {
    skip_blanks();
    if (!text_.starts_with(expected)) return false;
    text_.remove_prefix(expected.size());
    return true;
  }

  std::optional<Json> read(int depth) {
    if (depth > kMaxValueDepth) return std::nullopt;
    if (take("{")) return read_object(depth);
    if (take("[")) return read_array(depth);
    if (std::optional<std::string> text = read_string()) return Json(*std::move(text));
    skip_blanks();
    const std::string_view word = trimmed_right(text_.substr(0, text_.find_first_of(",]}")));
    std::optional<Json> scalar = scalar_of(word, notation_);
    if (scalar) text_.remove_prefix(word.size());
    return scalar;
  }

  // Nothing, and nothing is read, where no string begins.
  std::optional<std::string> read_string() {
    const Escapes escapes = notation_.strings.escapes;
    std::string quote = notation_.strings.quote;
    skip_blanks();
    if (escapes == Escapes::python && text_.starts_with('"')) quote = "\"";
    if (quote.empty() || !text_.starts_with(quote)) return std::nullopt;
    size_t end = quote.size();
    while (end < text_.size() && !text_.substr(end).starts_with(quote)) {
      end += escapes != Escapes::none && text_[end] == '\\' ? 2 : 1;
    }
    if (end >= text_.size()) return std::nullopt;
    std::optional<std::string> text =
        unescaped(text_.substr(quote.size(), end - quote.size()), escapes);
    if (text) text_.remove_prefix(end + quote.size());
    return text;
  }

  std::optional<std::string> read_key() {
    if (std::optional<std::string> quoted = read_string()) return quoted;
    if (notation_.quotes_keys) return std::nullopt;
    const size_t end = text_.find_first_of(":,{}[]");
    if (end == std::string_view::npos) return std::nullopt;
    std::string key(trimmed(text_.substr(0, end)));
    text_.remove_prefix(end);
    return key;
  }

  std::optional<Json> read_object(int depth) {
    Json::Object members;
    std::set<std::string> keys;
    if (take("}")) return Json(std::move(members));
    do {
      std::optional<std::string> key = read_key();
      if (!key || !keys.insert(*key).second || !take(":")) return std::nullopt;
      std::optional<Json> value = read(depth + 1);
      if (!value) return std::nullopt;
      members.emplace_back(*std::move(key), *std::move(value));
    } while (take(","));
    return take("}") ? std::optional(Json(std::move(members))) : std::nullopt;
  }

  std::optional<Json> read_array(int depth) {
    Json::Array items;
    if (take("]")) return Json(std::move(items));
    do {
      std::optional<Json> item = read(depth + 1);
      if (!item) return std::nullopt;
      items.push_back(*std::move(item));
    } while (take(","));
    return take("]") ? std::optional(Json(std::move(items))) : std::nullopt;
  }

  std::string_view text_;
  const ValueNotation& notation_;
};

}  // namespace

std::optional<std::string> unescaped(std::string_view text, Escapes escapes) {
  if (escapes == Escapes::none) return std::string(text);
  if (escapes == Escapes::python) return without_python_escapes(text);
  const std::optional<Json> value = parsed("\"" + std::string(text) + "\"");
  return value && value->is_string() ? std::optional(*value->string()) : std::nullopt;
}

namespace {

std::string quoted_string(std::string_view text, const StringNotation& strings) {
  if (strings.escapes == Escapes::json) return json_quote(text);
  std::string out = strings.quote;
  for (const char c : text) {
    if (strings.escapes == Escapes::python && (c == '\\' || c == '\'' || c == '\n')) out += '\\';
    out += strings.escapes == Escapes::python && c == '\n' ? 'n' : c;
  }
  return out + strings.quote;
}

}  // namespace

std::string written_value(const Json& value, const ValueNotation& notation) {
  if (value.is_null()) return notation.null_text;
  if (value.is_bool()) return *value.boolean() ? notation.true_text : notation.false_text;
  if (value.is_string()) return quoted_string(*value.string(), notation.strings);
  std::string out;
  if (const Json::Array* items = value.array()) {
    for (const Json& item : *items) {
      out += (out.empty() ? "" : ",") + written_value(item, notation);
    }
    return "[" + out + "]";
  }
  if (const Json::Object* members = value.object()) {
    for (const auto& [key, member] : *members) {
      out += (out.empty() ? "" : ",") +
             (notation.quotes_keys ? quoted_string(key, notation.strings) : key) + ":" +
             written_value(member, notation);
    }
    return "{" + out + "}";
  }
  return to_json(value);
}

std::optional<Json> read_value(std::string_view text, const ValueNotation& notation) {
  if (notation == ValueNotation{}) {
    if (std::optional<Json> value = parsed(trimmed(text))) return value;
  }
  return ValueReader(text, notation).read_all();
}

}  // namespace paceline
