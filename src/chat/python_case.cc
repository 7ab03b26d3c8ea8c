#include "chat/python_case.h"

#include <utf8proc.h>

#include <array>
#include <string>

#include "base/utf8.h"
#include "chat/python_character.h"
#include "chat/python_string.h"

namespace paceline {
namespace {

char32_t with(utf8proc_int32_t (*map)(utf8proc_int32_t), char32_t c) {
  return static_cast<char32_t>(map(static_cast<utf8proc_int32_t>(c)));
}

// The full case folding, of three characters at the most.
std::u32string folding(char32_t c) {
  std::array<utf8proc_int32_t, 4> folded{};
  int last_class = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), folded.data(),
                                             folded.size(), UTF8PROC_CASEFOLD, &last_class);
  return {folded.begin(), folded.begin() + count};
}

enum class Capital { upper, title };

// Full case mapping, as Unicode's SpecialCasing.txt has it: what folds to several characters has as
// many in upper case, and in title case unless it has one sign for them.
void append_capital(std::string& out, char32_t c, Capital capital) {
  constexpr char32_t kIota = 0x3B9;
  constexpr char32_t kIotaSubscript = 0x345;
  const char32_t simple = with(capital == Capital::upper ? utf8proc_toupper : utf8proc_totitle, c);
  const std::u32string folded = folding(c);
  if (folded.size() < 2 || is_upper(c) || (capital == Capital::title && is_title(simple))) {
    return append_utf8(out, simple);
  }
  bool follows_cased = false;
  for (const char32_t part : folded) {
    if (capital == Capital::upper || !follows_cased) {
      append_utf8(out, with(utf8proc_toupper, part));
    } else {
      append_utf8(out, part == kIota ? kIotaSubscript : part);
    }
    follows_cased = follows_cased || is_cased(part);
  }
}

// Whether the sigma `bytes` of `text` ends a word and so has its final form (Final_Sigma of the
// Unicode standard, 3.13).
bool is_final_sigma(std::string_view text, std::string_view bytes) {
  std::string_view before(text.data(), static_cast<size_t>(bytes.data() - text.data()));
  const auto last_of_before = [&] { return decode_utf8(last_character(before)).code_point; };
  while (!before.empty() && is_case_ignorable(last_of_before())) {
    before.remove_suffix(last_character(before).size());
  }
  if (before.empty() || !is_cased(last_of_before())) return false;
  std::string_view behind = text.substr(static_cast<size_t>(bytes.data() - text.data()));
  behind.remove_prefix(bytes.size());
  while (!behind.empty()) {
    const DecodedCodePoint next = decode_utf8(behind);
    if (!is_case_ignorable(next.code_point)) return !is_cased(next.code_point);
    behind.remove_prefix(next.size);
  }
  return true;
}

// Appends the lower case of the character `bytes` of `text`.
void append_lower(std::string& out, char32_t c, std::string_view bytes, std::string_view text) {
  constexpr char32_t kSigma = 0x3A3;
  constexpr char32_t kFinalSigma = 0x3C2;
  if (c == 0x130) {
    out += "i\xCC\x87";
  } else if (c == kSigma && is_final_sigma(text, bytes)) {
    append_utf8(out, kFinalSigma);
  } else {
    append_utf8(out, with(utf8proc_tolower, c));
  }
}

}  // namespace

std::string upper_case(std::string_view text) {
  std::string out;
  for_each_code_point(
      text, [&](char32_t c, std::string_view) { append_capital(out, c, Capital::upper); });
  return out;
}

std::string lower_case(std::string_view text) {
  std::string out;
  for_each_code_point(
      text, [&](char32_t c, std::string_view bytes) { append_lower(out, c, bytes, text); });
  return out;
}

std::string case_folded(std::string_view text) {
  std::string out;
  for_each_code_point(text, [&](char32_t c, std::string_view) {
    for (const char32_t part : folding(c)) append_utf8(out, part);
  });
  return out;
}

std::string capitalized(std::string_view text) {
  std::string out;
  for_each_code_point(text, [&](char32_t c, std::string_view bytes) {
    out.empty() ? append_capital(out, c, Capital::title) : append_lower(out, c, bytes, text);
  });
  return out;
}

std::string title_case(std::string_view text) {
  std::string out;
  bool follows_cased = false;
  for_each_code_point(text, [&](char32_t c, std::string_view bytes) {
    follows_cased ? append_lower(out, c, bytes, text) : append_capital(out, c, Capital::title);
    follows_cased = is_cased(c);
  });
  return out;
}

std::string swapped_case(std::string_view text) {
  std::string out;
  for_each_code_point(text, [&](char32_t c, std::string_view bytes) {
    if (is_upper(c)) {
      append_lower(out, c, bytes, text);
    } else if (is_lower(c)) {
      append_capital(out, c, Capital::upper);
    } else {
      out += bytes;
    }
  });
  return out;
}

namespace {

enum class Case { upper, lower };

// Whether some characters have this case, and none another.
bool is_all(std::string_view text, Case wanted) {
  bool has_wanted = false;
  bool has_other = false;
  for_each_code_point(text, [&](char32_t c, std::string_view) {
    has_wanted = has_wanted || (wanted == Case::upper ? is_upper(c) : is_lower(c));
    has_other = has_other || is_title(c) || (wanted == Case::upper ? is_lower(c) : is_upper(c));
  });
  return has_wanted && !has_other;
}

}  // namespace

bool is_upper_text(std::string_view text) { return is_all(text, Case::upper); }

bool is_lower_text(std::string_view text) { return is_all(text, Case::lower); }

bool is_title_text(std::string_view text) {
  bool cased = false;
  bool fits = true;
  bool follows_cased = false;
  for_each_code_point(text, [&](char32_t c, std::string_view) {
    if (is_upper(c) || is_title(c)) fits = fits && !follows_cased;
    if (is_lower(c)) fits = fits && follows_cased;
    follows_cased = is_cased(c);
    cased = cased || follows_cased;
  });
  return cased && fits;
}

}  // namespace paceline
