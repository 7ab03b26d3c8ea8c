#include "chat/template_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/utf8.h"
#include "chat/python_space.h"
#include "chat/template_string_literal.h"

namespace paceline {
namespace {

using Kind = TemplateToken::Kind;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<uint8_t>(c) >= 0x80;
}

// \r\n and \r become \n; one newline at the end goes.
std::string normalized(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text.push_back(source[i]);
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalized(source)) {
    for (size_t i = 0; i < source_.size(); ++i) {
      if (source_[i] == '\n') lines_.push_back(i + 1);
    }
  }

  std::vector<TemplateToken> run() {
    while (at_ < source_.size()) {
      const size_t tag = find_tag();
      if (tag == std::string::npos) {
        add(Kind::text, at_, source_.substr(at_));
        break;
      }
      add_text_before(tag);
      at_ = tag;
      read_tag();
    }
    add(Kind::end, source_.size(), "");
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(at_); }

  // Goes on from the last one asked for: positions are asked for in order, and lines may be long.
  TemplatePosition position(size_t offset) const {
    const auto line = std::upper_bound(lines_.begin(), lines_.end(), offset) - lines_.begin();
    const size_t begin = lines_[static_cast<size_t>(line) - 1];
    if (known_offset_ < begin || known_offset_ > offset) {
      known_offset_ = begin;
      known_column_ = 1;
    }
    for (; known_offset_ < std::min(offset, source_.size()); ++known_offset_) {
      known_column_ += (static_cast<uint8_t>(source_[known_offset_]) & 0xC0) != 0x80 ? 1 : 0;
    }
    return {static_cast<uint32_t>(line), known_column_};
  }

  template <class... T>
  [[noreturn]] void fail(size_t offset, fmt::format_string<T...> format, T&&... values) const {
    throw TemplateError(position(offset), fmt::format(format, std::forward<T>(values)...));
  }

  void add(Kind kind, size_t offset, std::string text) {
    if (kind == Kind::text && text.empty()) return;
    tokens_.push_back({kind, std::move(text), position(offset)});
  }

  size_t find_tag() const {
    for (size_t i = at_; i + 1 < source_.size(); ++i) {
      if (source_[i] == '{' &&
          std::string_view("{%#").find(source_[i + 1]) != std::string_view::npos)
        return i;
    }
    return std::string::npos;
  }

  // The sign behind the two characters that open a tag: '-', '+' or none.
  char sign_at(size_t tag) const {
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    return sign == '-' || sign == '+' ? sign : '\0';
  }

  void add_text_before(size_t tag) {
    std::string text = source_.substr(at_, tag - at_);
    const char sign = sign_at(tag);
    if (sign == '-') {
      text.resize(begin_of_last_spaces(text));
    } else if (sign != '+' && source_[tag + 1] != '{') {
      // lstrip_blocks: only blanks between the line's beginning and the tag.
      const size_t newline = text.rfind('\n');
      const bool begins_line = newline != std::string::npos || starts_line_;
      const size_t line = newline == std::string::npos ? 0 : newline + 1;
      if (begins_line && text.find_first_not_of(" \t", line) == std::string::npos)
        text.resize(line);
    }
    add(Kind::text, at_, std::move(text));
  }

  void read_tag() {
    const char kind = source_[at_ + 1];
    if (kind == '#') return read_comment();
    if (kind == '%' && read_raw()) return;
    const size_t begin = at_;
    const bool is_print = kind == '{';
    add(is_print ? Kind::print_begin : Kind::block_begin, begin, "");
    at_ += 2;
    if (sign_at(begin) != '\0') ++at_;
    std::string open;  // brackets
    while (true) {
      skip_white_space();
      if (at_ >= source_.size()) fail(begin, "{} is not closed", is_print ? "{{" : "{%");
      if (open.empty() && read_end(is_print)) return;
      read_token(open);
    }
  }

  void skip_white_space() { at_ = end_of_spaces(source_, at_); }

  // What stands behind a tag's end is stripped as its sign says.
  void strip_behind(char sign, bool trims) {
    starts_line_ = false;
    if (sign == '-') {
      const size_t begin = at_;
      skip_white_space();
      starts_line_ = at_ > begin && source_[at_ - 1] == '\n';
    } else if (trims && sign != '+' && at_ < source_.size() && source_[at_] == '\n') {
      ++at_;
      starts_line_ = true;
    }
  }

  bool read_end(bool is_print) {
    const std::string_view end = is_print ? "}}" : "%}";
    const size_t begin = at_;
    char sign = '\0';
    if (rest().starts_with(end)) {
    } else if ((rest()[0] == '-' || (rest()[0] == '+' && !is_print)) &&
               rest().substr(1).starts_with(end)) {
      sign = rest()[0];
      ++at_;
    } else {
      return false;
    }
    add(is_print ? Kind::print_end : Kind::block_end, begin, "");
    at_ += 2;
    strip_behind(sign, !is_print);
    return true;
  }

  void read_comment() {
    const size_t end = source_.find("#}", at_ + 2);
    if (end == std::string::npos) fail(at_, "{{# is not closed");
    const char sign = end > at_ + 2 && (source_[end - 1] == '-' || source_[end - 1] == '+')
                          ? source_[end - 1]
                          : '\0';
    at_ = end + 2;
    strip_behind(sign, true);
  }

  // Where a tag that holds only `word` ends, with its sign; nothing if it isn't one.
  struct Bare {
    size_t end;
    char sign;
  };
  std::optional<Bare> bare_tag(size_t tag, std::string_view word) const {
    size_t i = tag + 2;
    if (sign_at(tag) != '\0') ++i;
    i = end_of_spaces(source_, i);
    if (source_.compare(std::min(i, source_.size()), word.size(), word) != 0) return std::nullopt;
    i = end_of_spaces(source_, i + word.size());
    if (i >= source_.size()) return std::nullopt;
    char sign = '\0';
    if (source_[i] == '-' || source_[i] == '+') sign = source_[i++];
    if (source_.compare(i, 2, "%}") != 0) return std::nullopt;
    return Bare{i + 2, sign};
  }

  bool read_raw() {
    const auto begin = bare_tag(at_, "raw");
    if (!begin || begin->sign == '+') return false;
    const size_t tag = at_;
    at_ = begin->end;
    strip_behind(begin->sign, false);
    for (size_t i = at_; (i = source_.find("{%", i)) != std::string::npos; ++i) {
      const auto end = bare_tag(i, "endraw");
      if (!end) continue;
      add_text_before(i);
      at_ = end->end;
      strip_behind(end->sign, true);
      return true;
    }
    fail(tag, "{{% raw %}} is not closed");
  }

  void read_token(std::string& open) {
    const size_t begin = at_;
    const char c = source_[at_];
    if (is_digit(c)) return read_number();
    if (begins_name(c)) {
      while (at_ < source_.size() && (begins_name(source_[at_]) || is_digit(source_[at_]))) ++at_;
      return add(Kind::name, begin, source_.substr(begin, at_ - begin));
    }
    if (c == '"' || c == '\'') return read_string(c);
    static constexpr std::array<std::string_view, 26> kOperators = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (const std::string_view op : kOperators) {
      if (!rest().starts_with(op)) continue;
      balance(c, open);
      at_ += op.size();
      return add(Kind::op, begin, std::string(op));
    }
    fail(begin, "unexpected character \"{}\"", rest().substr(0, decode_utf8(rest()).size));
  }

  void balance(char c, std::string& open) const {
    static constexpr std::string_view kOpening = "([{";
    static constexpr std::string_view kClosing = ")]}";
    if (kOpening.find(c) != std::string_view::npos) open.push_back(kClosing[kOpening.find(c)]);
    if (kClosing.find(c) == std::string_view::npos) return;
    if (open.empty()) fail(at_, "unexpected '{}'", c);
    if (open.back() != c) fail(at_, "unexpected '{}', expected '{}'", c, open.back());
    open.pop_back();
  }

  // A quote ends it unless a backslash stands before.
  void read_string(char quote) {
    const size_t begin = at_;
    for (++at_; at_ < source_.size() && source_[at_] != quote; ++at_) {
      if (source_[at_] == '\\') ++at_;
    }
    if (at_ >= source_.size()) fail(begin, "a string is not closed");
    ++at_;
    try {
      add(Kind::string, begin,
          unescape_string(std::string_view(source_).substr(begin + 1, at_ - begin - 2)));
    } catch (TemplateError& error) {
      error.set_position(position(begin));
      throw;
    }
  }

  // Digits of a base with single underscores between them, from `i` on; where they end.
  size_t end_of_digits(size_t i, bool (*is_one)(char)) const {
    while (i < source_.size()) {
      if (is_one(source_[i])) {
        ++i;
      } else if (source_[i] == '_' && i + 1 < source_.size() && is_one(source_[i + 1])) {
        i += 2;
      } else {
        break;
      }
    }
    return i;
  }

  bool read_based_integer() {
    const char mark = at_ + 1 < source_.size() ? source_[at_ + 1] : '\0';
    bool (*is_one)(char) = nullptr;
    if (mark == 'x' || mark == 'X') {
      is_one = [](char c) {
        return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
      };
    } else if (mark == 'o' || mark == 'O') {
      is_one = [](char c) { return c >= '0' && c <= '7'; };
    } else if (mark == 'b' || mark == 'B') {
      is_one = [](char c) { return c == '0' || c == '1'; };
    }
    if (source_[at_] != '0' || is_one == nullptr) return false;
    const size_t end = end_of_digits(at_ + 2, is_one);
    if (end == at_ + 2) return false;
    add_number(Kind::integer, end);
    return true;
  }

  void add_number(Kind kind, size_t end) {
    std::string text = source_.substr(at_, end - at_);
    std::erase(text, '_');
    add(kind, at_, std::move(text));
    at_ = end;
  }

  void read_number() {
    if (read_based_integer()) return;
    size_t end = end_of_digits(at_, is_digit);
    bool is_float = false;
    // Not behind a dot: a.0.1 are two subscripts.
    const bool may_be_float = at_ == 0 || source_[at_ - 1] != '.';
    if (may_be_float && end + 1 < source_.size() && source_[end] == '.' &&
        is_digit(source_[end + 1])) {
      end = end_of_digits(end + 1, is_digit);
      is_float = true;
    }
    if (may_be_float && end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      size_t digits = end + 1;
      if (digits < source_.size() && (source_[digits] == '+' || source_[digits] == '-')) ++digits;
      if (digits < source_.size() && is_digit(source_[digits])) {
        end = end_of_digits(digits, is_digit);
        is_float = true;
      }
    }
    if (!is_float && source_[at_] == '0') {  // 007 is three integers
      size_t zeros = at_ + 1;
      while (zeros < end && (source_[zeros] == '0' || source_[zeros] == '_')) ++zeros;
      end = zeros;
    }
    add_number(is_float ? Kind::floating : Kind::integer, end);
  }

  std::string source_;
  std::vector<size_t> lines_ = {0};  // where each begins
  mutable size_t known_offset_ = 0;
  mutable uint32_t known_column_ = 1;
  size_t at_ = 0;
  bool starts_line_ = true;  // what follows is the beginning of a line
  std::vector<TemplateToken> tokens_;
};

}  // namespace

std::vector<TemplateToken> lex_template(std::string_view source) { return Lexer(source).run(); }

}  // namespace paceline
