#include "grammar/lark_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/json_cursor.h"
#include "base/utf8.h"
#include "paceline/error.h"

namespace paceline {
namespace {

struct LarkFlags {
  bool ignores_case = false;     // i
  bool dot_takes_lines = false;  // s
  bool is_verbose = false;       // x: blanks and comments are no part of the pattern
};

bool is_ascii_letter(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_ascii_digit(char32_t c) { return c >= '0' && c <= '9'; }
char32_t other_case(char32_t letter) { return letter ^ 0x20; }

// Reads the pattern once, from left to right, and writes it.
class DialectTranslator {
 public:
  DialectTranslator(std::string_view pattern, std::string_view flags) : rest_(pattern) {
    for (const char flag : flags) set_flag(flag, true);
  }

  std::string translate() {
    while (!rest_.empty()) translate_one();
    return std::move(out_);
  }

 private:
  LarkFlags& flags() { return groups_.back(); }

  [[noreturn]] static void refuse(ErrorCode code, std::string_view what) {
    throw Error(code, std::string(what));
  }

  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  char32_t take_code_point() {
    if (rest_.empty()) refuse(ErrorCode::invalid, "the regular expression ends in the middle");
    const DecodedCodePoint decoded = decode_utf8(rest_);
    rest_.remove_prefix(decoded.size);
    return decoded.code_point;
  }

  void translate_one() {
    switch (rest_.front()) {
      case '(':
        open_group();
        break;
      case ')':
        if (groups_.size() > 1) groups_.pop_back();
        out_ += take_code_point() == ')' ? ")" : "";
        break;
      case '[':
        translate_class();
        break;
      case '\\':
        translate_escape();
        break;
      case '.':
        take_code_point();
        out_ += flags().dot_takes_lines ? "[\\s\\S]" : "[^\\n]";
        break;
      case '{':
        translate_brace();
        break;
      case '*':
      case '+':
      case '?':
      case '|':
      case '^':
      case '$':
        append_utf8(out_, take_code_point());
        break;
      default:
        translate_character();
    }
  }

  void translate_character() {
    const char32_t c = take_code_point();
    if (flags().is_verbose) {
      if (c == ' ' || (c >= '\t' && c <= '\r')) return;
      if (c == '#') {
        while (!rest_.empty() && rest_.front() != '\n') rest_.remove_prefix(1);
        return;
      }
    } else if (c == '\n' || c == '\r') {
      refuse(ErrorCode::invalid, "a line break in a regular expression, expected \\n");
    }
    write_alone(c);
  }

  void open_group() {
    take("(");
    if (take("?#")) {
      while (take_code_point() != ')') {
      }
      return;
    }
    groups_.push_back(flags());
    if (!take("?")) {
      out_ += "(";
    } else if (take("P<") || is_name_of_group()) {
      while (take_code_point() != '>') {
      }
      out_ += "(?:";
    } else if (take("P=")) {
      refuse(ErrorCode::unsupported, "back-references can't be enforced");
    } else if (take(">")) {
      refuse(ErrorCode::unsupported, "atomic groups (?>...) can't be enforced");
    } else if (rest_.starts_with("=") || rest_.starts_with("!") || rest_.starts_with("<")) {
      out_ += "(?";
      append_utf8(out_, take_code_point());
    } else {
      open_flags();
    }
  }

  // "(?<name>"; the '<' of look-behind is followed by '=' or '!'.
  bool is_name_of_group() {
    if (rest_.size() < 2 || rest_[1] == '=' || rest_[1] == '!') return false;
    return take("<");
  }

  // "(?:", "(?i:", "(?s-i:", or "(?i)", which changes the flags up to the end of the group.
  void open_flags() {
    bool turns_on = true;
    for (;;) {
      const char32_t c = take_code_point();
      if (c == ':') break;
      if (c == ')') {
        const LarkFlags changed = flags();
        groups_.pop_back();
        flags() = changed;
        return;
      }
      if (c == '-') {
        turns_on = false;
      } else {
        set_flag(c, turns_on);
      }
    }
    out_ += "(?:";
  }

  void set_flag(char32_t flag, bool value) {
    switch (flag) {
      case 'i':
        flags().ignores_case = value;
        return;
      case 's':
        flags().dot_takes_lines = value;
        return;
      case 'x':
        flags().is_verbose = value;
        return;
      case 'u':
        return;
      case 'm':
      case 'l':
        refuse(ErrorCode::unsupported,
               fmt::format("the flag {} of regular expressions is not supported",
                           static_cast<char>(flag)));
      default: {
        std::string shown;
        append_utf8(shown, flag);
        refuse(ErrorCode::invalid, found_instead(shown_text(shown), "a flag: one of i m s l u x"));
      }
    }
  }

  // A number of repetitions, or a brace itself.
  void translate_brace() {
    const size_t end = rest_.find('}');
    const std::string_view inside = end == std::string_view::npos ? "" : rest_.substr(1, end - 1);
    const bool is_count =
        std::any_of(inside.begin(), inside.end(), [](char c) { return is_ascii_digit(c); }) &&
        std::all_of(inside.begin(), inside.end(),
                    [](char c) { return is_ascii_digit(c) || c == ','; }) &&
        std::count(inside.begin(), inside.end(), ',') <= 1;
    take("{");
    if (!is_count) {
      out_ += "\\{";
      return;
    }
    out_ += inside.starts_with(',') ? "{0" : "{";
    out_ += rest_.substr(0, end);
    rest_.remove_prefix(end);
  }

  // Outside of a class.
  void translate_escape() {
    if (const auto character = take_escaped_character()) return write_alone(*character);
    take("\\");
    const char32_t c = take_code_point();
    if (c == 'A') {
      out_ += '^';
    } else if (c == 'z' || c == 'Z') {
      out_ += '$';
    } else {
      write_class_escape(c);
    }
  }

  // \d and the like, and properties.
  void write_class_escape(char32_t c) {
    if (std::u32string_view(U"dDwWsSbB123456789").find(c) != std::u32string_view::npos) {
      out_ += '\\';
      append_utf8(out_, c);
    } else if (c == 'p' || c == 'P') {
      if (flags().ignores_case) {
        refuse(ErrorCode::unsupported, "\\p{...} is not supported with the flag i");
      }
      out_ += c == 'p' ? "\\p{" : "\\P{";
      if (take("{")) {
        char32_t next = 0;
        while ((next = take_code_point()) != '}') append_utf8(out_, next);
      } else {
        append_utf8(out_, take_code_point());
      }
      out_ += '}';
    } else {
      std::string shown;
      append_utf8(shown, c);
      refuse(ErrorCode::unsupported, fmt::format("the escape \\{} is not supported", shown));
    }
  }

  // The character of an escape that stands for one; else nothing is taken.
  std::optional<char32_t> take_escaped_character() {
    if (rest_.size() < 2) refuse(ErrorCode::invalid, "found \\ at the end, expected an escape");
    const char c = rest_[1];
    constexpr std::string_view kNames = "nrtfva";
    constexpr std::string_view kValues = "\n\r\t\f\v\a";
    if (const size_t index = kNames.find(c); index != std::string_view::npos) {
      rest_.remove_prefix(2);
      return static_cast<unsigned char>(kValues[index]);
    }
    if (c == 'x' || c == 'u' || c == 'U') {
      rest_.remove_prefix(2);
      return take_pair(c);
    }
    if (c == '0' && (rest_.size() == 2 || !is_ascii_digit(static_cast<unsigned char>(rest_[2])))) {
      rest_.remove_prefix(2);
      return U'\0';
    }
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && byte >= 0x20 && !is_ascii_letter(byte) && !is_ascii_digit(byte)) {
      rest_.remove_prefix(2);
      return byte;
    }
    return std::nullopt;
  }

  // \xHH, \uHHHH, \UHHHHHHHH, with braces any number of digits; two surrogates are one character.
  char32_t take_pair(char kind) {
    const char32_t first = take_hexadecimal(kind);
    if (first < 0xD800 || first > 0xDFFF) return first;
    if (first < 0xDC00 && take("\\u")) {
      const char32_t second = take_hexadecimal('u');
      if (second >= 0xDC00 && second <= 0xDFFF) {
        return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
      }
    }
    refuse(ErrorCode::invalid,
           fmt::format("U+{:04X} alone isn't a character", static_cast<uint32_t>(first)));
  }

  char32_t take_hexadecimal(char kind) {
    std::string_view digits;
    if (take("{")) {
      digits = rest_.substr(0, rest_.find('}'));
      rest_.remove_prefix(std::min(rest_.size(), digits.size() + 1));
    } else {
      const size_t count = kind == 'x' ? 2 : (kind == 'u' ? 4 : 8);
      digits = rest_.substr(0, count);
      if (digits.size() < count) digits = "";
      rest_.remove_prefix(digits.size());
    }
    char32_t value = 0;
    const bool is_right = !digits.empty() && digits.size() <= 8 &&
                          std::all_of(digits.begin(), digits.end(), [&](char c) {
                            const size_t digit = std::string_view("0123456789abcdefABCDEF").find(c);
                            if (digit == std::string_view::npos) return false;
                            value =
                                value * 16 + static_cast<char32_t>(digit < 16 ? digit : digit - 6);
                            return true;
                          });
    if (!is_right || value > 0x10FFFF) {
      refuse(ErrorCode::invalid,
             fmt::format("found {} after \\{}, expected the hexadecimal digits of a character",
                         shown_text(digits), kind));
    }
    return value;
  }

  void write_alone(char32_t c) {
    check_case_of(c);
    if (flags().ignores_case && is_ascii_letter(c)) {
      out_ += '[';
      append_utf8(out_, c);
      append_utf8(out_, other_case(c));
      out_ += ']';
    } else {
      write(c);
    }
  }

  void check_case_of(char32_t c) {
    if (flags().ignores_case && c >= 0x80) {
      refuse(ErrorCode::unsupported, "the flag i is not supported with characters beyond ASCII");
    }
  }

  // One character, in or outside of a class.
  void write(char32_t c) {
    if (c < 0x20 || c == 0x7F) {
      out_ += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
      return;
    }
    if (c < 0x80 &&
        std::string_view("^$\\.*+?()[]{}|/").find(static_cast<char>(c)) != std::string_view::npos) {
      out_ += '\\';
    }
    append_utf8(out_, c);
  }

  void translate_class() {
    take("[");
    out_ += '[';
    if (take("^")) out_ += '^';
    for (bool is_first = true; is_first || !rest_.starts_with("]"); is_first = false) {
      if (rest_.empty()) refuse(ErrorCode::invalid, "found the end, expected ] for a class");
      translate_class_item();
    }
    take("]");
    out_ += ']';
  }

  void translate_class_item() {
    const std::optional<char32_t> first = take_class_character();
    if (!first) return;
    const bool is_range = rest_.size() > 1 && rest_[0] == '-' && rest_[1] != ']';
    if (!is_range) return write_range(*first, *first);
    take("-");
    const std::optional<char32_t> last = take_class_character();
    if (!last || *last < *first) {
      refuse(ErrorCode::invalid, "a range in a class has to end with a character, after the first");
    }
    write_range(*first, *last);
  }

  // Nothing: a class escape such as \d, which was written.
  std::optional<char32_t> take_class_character() {
    if (rest_.empty()) refuse(ErrorCode::invalid, "found the end, expected ] for a class");
    for (const std::string_view operation : {"[", "&&", "~~", "--"}) {
      if (rest_.starts_with(operation)) {
        refuse(ErrorCode::unsupported,
               fmt::format("{} in a class is not supported; the character is \\{}", operation,
                           operation[0]));
      }
    }
    if (rest_.front() != '\\') return take_code_point();
    if (const auto character = take_escaped_character()) return character;
    take("\\");
    const char32_t c = take_code_point();
    if (c == 'b') return U'\b';
    if (c == 'B' || is_ascii_digit(c)) {
      refuse(ErrorCode::invalid,
             fmt::format("found \\{} in a class, expected a character", static_cast<char>(c)));
    }
    write_class_escape(c);
    return std::nullopt;
  }

  void write_range(char32_t first, char32_t last) {
    check_case_of(last);
    write_plain_range(first, last);
    if (!flags().ignores_case) return;
    for (const auto& [begin, end] : {std::pair{U'a', U'z'}, std::pair{U'A', U'Z'}}) {
      const char32_t low = std::max(first, begin);
      const char32_t high = std::min(last, end);
      if (low <= high) write_plain_range(other_case(low), other_case(high));
    }
  }

  void write_plain_range(char32_t first, char32_t last) {
    write_in_class(first);
    if (last == first) return;
    out_ += '-';
    write_in_class(last);
  }

  void write_in_class(char32_t c) {
    if (c == '-') out_ += '\\';
    write(c);
  }

  std::string_view rest_;
  std::string out_;
  std::vector<LarkFlags> groups_{1};
};

}  // namespace

std::string ecma_pattern(std::string_view pattern, std::string_view flags) {
  return DialectTranslator(pattern, flags).translate();
}

}  // namespace paceline
