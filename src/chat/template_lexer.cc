#include "chat/template_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "chat/python_character.h"
#include "chat/python_string.h"
#include "chat/template_error.h"
#include "chat/template_literal.h"

namespace paceline {
namespace {

class TemplateSource {
 public:
  // \r\n and \r become \n; one newline at the end is dropped.
  explicit TemplateSource(std::string_view source);

  const std::string& text() const { return text_; }
  // The position of a byte. Ascending offsets are fastest: columns are counted from the last one.
  TemplatePosition position(size_t offset) const;

 private:
  std::string text_;
  std::vector<size_t> lines_ = {0};  // offsets of line starts
  mutable size_t known_offset_ = 0;
  mutable uint32_t known_column_ = 1;
};

TemplateSource::TemplateSource(std::string_view source) {
  text_.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    const bool is_return = source[i] == '\r';
    text_.push_back(is_return ? '\n' : source[i]);
    if (is_return && i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (text_.ends_with('\n')) text_.pop_back();
  for (size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') lines_.push_back(i + 1);
  }
}

TemplatePosition TemplateSource::position(size_t offset) const {
  const auto line = std::upper_bound(lines_.begin(), lines_.end(), offset) - lines_.begin();
  const size_t begin = lines_[static_cast<size_t>(line) - 1];
  if (known_offset_ < begin || known_offset_ > offset) {
    known_offset_ = begin;
    known_column_ = 1;
  }
  for (; known_offset_ < std::min(offset, text_.size()); ++known_offset_) {
    known_column_ += (static_cast<uint8_t>(text_[known_offset_]) & 0xC0) != 0x80 ? 1 : 0;
  }
  return {static_cast<uint32_t>(line), known_column_};
}

using Kind = TemplateToken::Kind;

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<TemplateToken> run() {
    while (at_ < text_.size()) {
      const size_t tag = find_tag();
      if (tag == std::string::npos) {
        add(Kind::text, at_, text_.substr(at_));
        break;
      }
      add_text_before(tag);
      at_ = tag;
      read_tag();
    }
    add(Kind::end, text_.size(), "");
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(text_).substr(at_); }

  template <class... T>
  [[noreturn]] void fail(size_t offset, fmt::format_string<T...> format, T&&... values) const {
    throw TemplateError(source_.position(offset), fmt::format(format, std::forward<T>(values)...));
  }

  void add(Kind kind, size_t offset, std::string text) {
    if (kind == Kind::text && text.empty()) return;
    tokens_.push_back({kind, std::move(text), source_.position(offset)});
  }

  size_t find_tag() const {
    for (size_t i = at_; i + 1 < text_.size(); ++i) {
      if (text_[i] == '{' && std::string_view("{%#").find(text_[i + 1]) != std::string_view::npos)
        return i;
    }
    return std::string::npos;
  }

  // The sign after the two characters that open a tag: '-', '+' or none.
  char sign_at(size_t tag) const {
    const char sign = tag + 2 < text_.size() ? text_[tag + 2] : '\0';
    return sign == '-' || sign == '+' ? sign : '\0';
  }

  void add_text_before(size_t tag) {
    std::string text = text_.substr(at_, tag - at_);
    const char sign = sign_at(tag);
    if (sign == '-') {
      text.resize(begin_of_last_spaces(text));
    } else if (sign != '+' && text_[tag + 1] != '{') {
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
    const char kind = text_[at_ + 1];
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
      if (at_ >= text_.size()) fail(begin, "{} is not closed", is_print ? "{{" : "{%");
      if (open.empty() && read_end(is_print)) return;
      read_token(open);
    }
  }

  void skip_white_space() { at_ = end_of_spaces(text_, at_); }

  // Strips the text after a tag by the tag's sign ('-', '+' or none).
  void strip_after(char sign, bool trims) {
    starts_line_ = false;
    if (sign == '-') {
      const size_t begin = at_;
      skip_white_space();
      starts_line_ = at_ > begin && text_[at_ - 1] == '\n';
    } else if (trims && sign != '+' && at_ < text_.size() && text_[at_] == '\n') {
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
    strip_after(sign, !is_print);
    return true;
  }

  void read_comment() {
    const size_t end = text_.find("#}", at_ + 2);
    if (end == std::string::npos) fail(at_, "{{# is not closed");
    const char sign =
        end > at_ + 2 && (text_[end - 1] == '-' || text_[end - 1] == '+') ? text_[end - 1] : '\0';
    at_ = end + 2;
    strip_after(sign, true);
  }

  // The end and the sign of a tag that contains only `word`; nothing for another tag.
  struct Bare {
    size_t end;
    char sign;
  };
  std::optional<Bare> bare_tag(size_t tag, std::string_view word) const {
    size_t i = tag + 2;
    if (sign_at(tag) != '\0') ++i;
    i = end_of_spaces(text_, i);
    if (text_.compare(std::min(i, text_.size()), word.size(), word) != 0) return std::nullopt;
    i = end_of_spaces(text_, i + word.size());
    if (i >= text_.size()) return std::nullopt;
    char sign = '\0';
    if (text_[i] == '-' || text_[i] == '+') sign = text_[i++];
    if (text_.compare(i, 2, "%}") != 0) return std::nullopt;
    return Bare{i + 2, sign};
  }

  bool read_raw() {
    const auto begin = bare_tag(at_, "raw");
    if (!begin || begin->sign == '+') return false;
    const size_t tag = at_;
    at_ = begin->end;
    strip_after(begin->sign, false);
    for (size_t i = at_; (i = text_.find("{%", i)) != std::string::npos; ++i) {
      const auto end = bare_tag(i, "endraw");
      if (!end) continue;
      add_text_before(i);
      at_ = end->end;
      strip_after(end->sign, true);
      return true;
    }
    fail(tag, "{{% raw %}} is not closed");
  }

  void read_token(std::string& open) {
    const size_t begin = at_;
    const char c = text_[at_];
    if (c >= '0' && c <= '9') return read_number();
    if (const size_t end = end_of_name(at_); end > at_) {
      at_ = end;
      return add(Kind::name, begin, text_.substr(begin, end - begin));
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

  // Letters, digits and underscores of any script.
  size_t end_of_name(size_t at) const {
    while (at < text_.size()) {
      const DecodedCodePoint here = decode_utf8(std::string_view(text_).substr(at));
      if (!here.valid || !(here.code_point == U'_' || is_alnum(here.code_point))) break;
      at += here.size;
    }
    return at;
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

  // A quote ends the string unless a backslash precedes it.
  void read_string(char quote) {
    const size_t begin = at_;
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    if (at_ >= text_.size()) fail(begin, "a string is not closed");
    ++at_;
    try {
      add(Kind::string, begin,
          unescape_string(std::string_view(text_).substr(begin + 1, at_ - begin - 2)));
    } catch (TemplateError& error) {
      error.set_position(source_.position(begin));
      throw;
    }
  }

  void read_number() {
    const NumberLiteral number = scan_number(text_, at_);
    std::string text = text_.substr(at_, number.end - at_);
    std::erase(text, '_');
    add(number.is_float ? Kind::floating : Kind::integer, at_, std::move(text));
    at_ = number.end;
  }

  TemplateSource source_;
  const std::string& text_ = source_.text();
  size_t at_ = 0;
  bool starts_line_ = true;  // the next character begins a line
  std::vector<TemplateToken> tokens_;
};

}  // namespace

std::vector<TemplateToken> lex_template(std::string_view source) { return Lexer(source).run(); }

}  // namespace paceline
