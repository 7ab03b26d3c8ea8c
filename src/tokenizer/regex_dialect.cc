#include "tokenizer/regex_dialect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace paceline {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// Scans a pattern up to the first construct that the two engines may read differently.
class DialectCheck {
 public:
  explicit DialectCheck(std::string_view pattern) : rest_(pattern) {}

  std::optional<std::string> run() {
    while (!rest_.empty() && !problem_) step();
    return problem_;
  }

 private:
  void fail(std::string_view what) { problem_ = what; }

  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  void step() {
    const char c = rest_.front();
    if (c == '\\') return escape();
    if (c == '[') return character_class();
    if (c == '(') return group();
    if (c == '{') return interval();
    // In Ruby ^ and $ always match at line ends, and \Z and . define a line end differently.
    if (c == '^' || c == '$' || c == '.') return fail(fmt::format("{}", c));
    rest_.remove_prefix(1);
  }

  void escape() {
    rest_.remove_prefix(1);
    if (rest_.empty()) return fail("a backslash at the end");
    const char c = rest_.front();
    rest_.remove_prefix(1);
    if (c == 'p' || c == 'P') return property();
    if (c == 'x') return hexadecimal();
    constexpr std::string_view kSame = "rntfsSdD";
    const bool same = kSame.find(c) != std::string_view::npos;
    if (!same && (is_letter(c) || is_digit(c) || static_cast<unsigned char>(c) >= 0x80)) {
      fail(fmt::format("\\{}", c));
    }
  }

  void property() {
    if (!take("{")) return fail("\\p without a name in braces");
    take("^");
    // General categories only: other names select different properties.
    const size_t end = rest_.find('}');
    constexpr std::array<std::string_view, 37> kCategories = {
        "C",  "Cc", "Cf", "Cn", "Co", "Cs", "L",  "Ll", "Lm", "Lo", "Lt", "Lu", "M",
        "Mc", "Me", "Mn", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd", "Pe", "Pf", "Pi",
        "Po", "Ps", "S",  "Sc", "Sk", "Sm", "So", "Z",  "Zl", "Zp", "Zs"};
    const std::string_view name = rest_.substr(0, std::min(end, rest_.size()));
    const bool known = std::find(kCategories.begin(), kCategories.end(), name) != kCategories.end();
    if (end == std::string_view::npos || !known) {
      return fail(fmt::format("the property \\p{{{}}}", name));
    }
    rest_.remove_prefix(end + 1);
  }

  void hexadecimal() {
    const bool braced = take("{");
    size_t digits = 0;
    while (digits < rest_.size() && is_hex(rest_[digits])) ++digits;
    if (braced ? digits == 0 || digits > 6 : digits < 2) return fail("\\x");
    rest_.remove_prefix(braced ? digits : 2);
    if (braced && !take("}")) fail("\\x");
  }

  void character_class() {
    rest_.remove_prefix(1);
    take("^");
    if (rest_.starts_with(']')) return fail("a character class that begins with ]");
    while (!rest_.empty() && !problem_) {
      if (take("]")) return;
      if (rest_.front() == '[') return fail("a character class inside another");
      if (rest_.starts_with("&&")) return fail("an intersection of character classes");
      if (rest_.front() == '\\') {
        escape();
      } else {
        rest_.remove_prefix(1);
      }
    }
    if (!problem_) fail("a character class without an end");
  }

  void group() {
    rest_.remove_prefix(1);
    if (take("?i:")) return folded_group();
    if (take("*")) return fail("a verb (*...)");
    if (!rest_.starts_with("?")) return;
    constexpr std::array<std::string_view, 6> kSame = {"?:", "?=", "?!", "?>", "?<=", "?<!"};
    for (const std::string_view kind : kSame) {
      if (take(kind)) return;
    }
    fail(fmt::format("the group ({}", rest_.substr(0, 3)));
  }

  // In a caseless group of Oniguruma one character may match several (ß and ss, ligatures), in
  // PCRE2 not.
  void folded_group() {
    const size_t end = rest_.find(')');
    const std::string_view content = rest_.substr(0, std::min(end, rest_.size()));
    char before = 0;
    for (const char c : content) {
      const bool plain = is_letter(c) || c == '\'' || c == '|';
      if (!plain) return fail("a group (?i:...) with more in it than letters");
      const char lower = is_letter(c) ? static_cast<char>(c | 0x20) : c;
      const bool ligature = (before == 's' && (lower == 's' || lower == 't')) ||
                            (before == 'f' && (lower == 'f' || lower == 'i' || lower == 'l'));
      if (ligature) return fail(fmt::format("{}{} without regard to case", before, lower));
      before = lower;
    }
    rest_.remove_prefix(content.size());
  }

  // {n}, {n,} and {n,m}; the engines read what follows them differently.
  void interval() {
    rest_.remove_prefix(1);
    const size_t end = rest_.find('}');
    const std::string_view bounds = rest_.substr(0, std::min(end, rest_.size()));
    const size_t comma = bounds.find(',');
    const std::string_view low = bounds.substr(0, std::min(comma, bounds.size()));
    const std::string_view high =
        comma == std::string_view::npos ? std::string_view() : bounds.substr(comma + 1);
    const bool numbers = !low.empty() && std::all_of(low.begin(), low.end(), is_digit) &&
                         std::all_of(high.begin(), high.end(), is_digit);
    if (end == std::string_view::npos || !numbers) return fail("{ as a character of its own");
    rest_.remove_prefix(end + 1);
    if (rest_.starts_with('+') || rest_.starts_with('?')) fail("{...} followed by + or ?");
  }

  std::string_view rest_;
  std::optional<std::string> problem_;
};

}  // namespace

std::string with_spaces_spelt_out(std::string_view pattern) {
  constexpr std::string_view kSpaces =
      R"(\t-\r\x20\x85\xA0\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
  constexpr std::string_view kOthers =
      R"(\x00-\x08\x0E-\x1F\x21-\x84\x86-\x9F\xA1-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027})"
      R"(\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{10FFFF})";
  std::string result;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const char escaped = c == '\\' && i + 1 < pattern.size() ? pattern[++i] : '\0';
    if (escaped == 's' || escaped == 'S') {
      const std::string_view members = escaped == 's' ? kSpaces : kOthers;
      result += in_class ? std::string(members) : fmt::format("[{}]", members);
    } else if (c == '\\') {
      result.append(1, c).append(escaped == '\0' ? 0 : 1, escaped);
    } else {
      if (c == '[') in_class = true;
      if (c == ']') in_class = false;
      result += c;
    }
  }
  return result;
}

std::optional<std::string> dialect_difference(std::string_view pattern) {
  return DialectCheck(pattern).run();
}

}  // namespace paceline
