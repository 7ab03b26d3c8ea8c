#include "chat/python_string.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/utf8.h"
#include "chat/python_space.h"
#include "chat/template_error.h"

namespace paceline {
namespace {

bool is_line_end(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_upper(char32_t c) { return utf8proc_isupper(static_cast<utf8proc_int32_t>(c)) != 0; }
bool is_lower(char32_t c) { return utf8proc_islower(static_cast<utf8proc_int32_t>(c)) != 0; }
bool is_title(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }
bool is_cased(char32_t c) { return is_upper(c) || is_lower(c) || is_title(c); }

char32_t with(utf8proc_int32_t (*map)(utf8proc_int32_t), char32_t c) {
  return static_cast<char32_t>(map(static_cast<utf8proc_int32_t>(c)));
}

// The few characters whose capital is more than one are those people meet: sharp s and ligatures.
void append_upper(std::string& out, char32_t c, bool only_first) {
  switch (c) {
    case 0xDF:
      out += only_first ? "Ss" : "SS";
      return;
    case 0xFB01:
      out += only_first ? "Fi" : "FI";
      return;
    case 0xFB02:
      out += only_first ? "Fl" : "FL";
      return;
    default:
      append_utf8(out, with(only_first ? utf8proc_totitle : utf8proc_toupper, c));
  }
}

void append_lower(std::string& out, char32_t c) {
  if (c == 0x130) {
    out += "i\xCC\x87";
  } else {
    append_utf8(out, with(utf8proc_tolower, c));
  }
}

template <class Body>
void for_each_code_point(std::string_view text, Body&& body) {
  while (!text.empty()) {
    const DecodedCodePoint here = decode_utf8(text);
    body(here.code_point, text.substr(0, here.size));
    text.remove_prefix(here.size);
  }
}

bool has_character(std::string_view set, std::string_view character) {
  return set.find(character) != std::string_view::npos;
}

std::string_view last_character(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return text.substr(begin);
}

}  // namespace

int64_t length_of(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; });
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> all;
  for_each_code_point(text, [&](char32_t, std::string_view bytes) { all.push_back(bytes); });
  return all;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    const DecodedCodePoint here = decode_utf8(text.substr(i));
    const size_t end = i;
    i += here.size;
    if (!is_line_end(here.code_point)) continue;
    if (here.code_point == U'\r' && i < text.size() && text[i] == '\n') ++i;
    lines.push_back(text.substr(begin, end - begin));
    begin = i;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

std::vector<std::string_view> split_on_spaces(std::string_view text, int64_t max_splits,
                                              SplitFrom from) {
  std::vector<std::string_view> parts;
  if (from == SplitFrom::left) {
    text.remove_prefix(end_of_spaces(text, 0));
    while (!text.empty()) {
      size_t end = 0;
      while (end < text.size() && end_of_spaces(text, end) == end)
        end += decode_utf8(text.substr(end)).size;
      if (max_splits >= 0 && static_cast<int64_t>(parts.size()) >= max_splits) {
        parts.push_back(text);  // with the spaces at its end
        return parts;
      }
      parts.push_back(text.substr(0, end));
      text.remove_prefix(end_of_spaces(text, end));
    }
    return parts;
  }
  text = text.substr(0, begin_of_last_spaces(text));
  while (!text.empty()) {
    size_t begin = text.size();
    while (begin > 0) {
      const std::string_view last = last_character(text.substr(0, begin));
      if (is_python_space(decode_utf8(last).code_point)) break;
      begin -= last.size();
    }
    if (max_splits >= 0 && static_cast<int64_t>(parts.size()) >= max_splits) {
      parts.push_back(text);  // with the spaces at its beginning
      break;
    }
    parts.push_back(text.substr(begin));
    text = text.substr(0, begin_of_last_spaces(text.substr(0, begin)));
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_on(std::string_view text, std::string_view separator,
                                       int64_t max_splits, SplitFrom from) {
  std::vector<std::string_view> parts;
  const auto may_split = [&] {
    return max_splits < 0 || static_cast<int64_t>(parts.size()) < max_splits;
  };
  if (from == SplitFrom::left) {
    size_t at = 0;
    while (may_split() && (at = text.find(separator)) != std::string_view::npos) {
      parts.push_back(text.substr(0, at));
      text.remove_prefix(at + separator.size());
    }
    parts.push_back(text);
    return parts;
  }
  size_t at = 0;
  while (may_split() && (at = text.rfind(separator)) != std::string_view::npos) {
    parts.push_back(text.substr(at + separator.size()));
    text = text.substr(0, at);
  }
  parts.push_back(text);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::string_view stripped(std::string_view text, Ends ends) {
  if (ends != Ends::right) text.remove_prefix(end_of_spaces(text, 0));
  return ends == Ends::left ? text : text.substr(0, begin_of_last_spaces(text));
}

std::string_view stripped_of(std::string_view text, std::string_view set, Ends ends) {
  while (ends != Ends::right && !text.empty()) {
    const size_t size = decode_utf8(text).size;
    if (!has_character(set, text.substr(0, size))) break;
    text.remove_prefix(size);
  }
  while (ends != Ends::left && !text.empty()) {
    const std::string_view last = last_character(text);
    if (!has_character(set, last)) break;
    text.remove_suffix(last.size());
  }
  return text;
}

std::string upper_case(std::string_view text) {
  std::string out;
  for_each_code_point(text, [&](char32_t c, std::string_view) { append_upper(out, c, false); });
  return out;
}

std::string lower_case(std::string_view text) {
  std::string out;
  bool follows_cased = false;
  for (size_t i = 0; i < text.size();) {
    const DecodedCodePoint here = decode_utf8(text.substr(i));
    i += here.size;
    // The sigma at the end of a word has a form of its own.
    const bool ends_word = i >= text.size() || !is_cased(decode_utf8(text.substr(i)).code_point);
    if (here.code_point == 0x3A3 && follows_cased && ends_word) {
      append_utf8(out, 0x3C2);
    } else {
      append_lower(out, here.code_point);
    }
    follows_cased = is_cased(here.code_point);
  }
  return out;
}

std::string capitalized(std::string_view text) {
  if (text.empty()) return {};
  const DecodedCodePoint first = decode_utf8(text);
  std::string out;
  append_upper(out, first.code_point, true);
  return out + lower_case(text.substr(first.size));
}

std::string title_case(std::string_view text) {
  std::string out;
  bool follows_cased = false;
  for_each_code_point(text, [&](char32_t c, std::string_view) {
    follows_cased ? append_lower(out, c) : append_upper(out, c, true);
    follows_cased = is_cased(c);
  });
  return out;
}

std::string swapped_case(std::string_view text) {
  std::string out;
  for_each_code_point(text, [&](char32_t c, std::string_view bytes) {
    if (is_upper(c)) {
      append_lower(out, c);
    } else if (is_lower(c)) {
      append_upper(out, c, false);
    } else {
      out += bytes;
    }
  });
  return out;
}

bool all_characters(std::string_view text, const std::function<bool(char32_t)>& is) {
  bool all = !text.empty();
  for_each_code_point(text, [&](char32_t c, std::string_view) { all = all && is(c); });
  return all;
}

bool is_alpha(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return true;
    default:
      return false;
  }
}

bool is_decimal(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

bool is_digit(char32_t c) {
  const bool is_super_or_subscript = c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 ||
                                     (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089);
  return is_decimal(c) || is_super_or_subscript || (c >= 0x2460 && c <= 0x2468);
}

bool is_numeric(char32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_NO;
}

bool is_upper_text(std::string_view text) {
  bool cased = false;
  bool upper = true;
  for_each_code_point(text, [&](char32_t c, std::string_view) {
    upper = upper && !is_lower(c) && !is_title(c);
    cased = cased || is_upper(c);
  });
  return cased && upper;
}

bool is_lower_text(std::string_view text) {
  bool cased = false;
  bool lower = true;
  for_each_code_point(text, [&](char32_t c, std::string_view) {
    lower = lower && !is_upper(c) && !is_title(c);
    cased = cased || is_lower(c);
  });
  return cased && lower;
}

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

std::string replaced(std::string_view text, std::string_view from, std::string_view to,
                     int64_t count, size_t limit) {
  std::string out;
  const auto check = [&] {
    if (out.size() > limit)
      throw TemplateError("replace makes too long a string", ErrorCode::exhausted);
  };
  if (from.empty()) {  // between all characters
    int64_t done = 0;
    for_each_code_point(text, [&](char32_t, std::string_view bytes) {
      if (count < 0 || done++ < count) out += to;
      out += bytes;
      check();
    });
    if (count < 0 || done < count) out += to;
    return out;
  }
  for (int64_t done = 0; count < 0 || done < count; ++done) {
    const size_t at = text.find(from);
    if (at == std::string_view::npos) break;
    out.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
    check();
  }
  out += text;
  check();
  return out;
}

std::vector<size_t> indices_of(const PythonSlice& slice, int64_t length) {
  if (slice.step == 0) throw TemplateError("slice step cannot be zero");
  const bool is_forward = slice.step > 0;
  const int64_t lowest = is_forward ? 0 : -1;
  const int64_t highest = is_forward ? length : length - 1;
  const auto bounded = [&](int64_t index) {
    if (index < 0) index = index < -length ? lowest : std::max(index + length, lowest);
    return std::clamp(index, lowest, highest);
  };
  const int64_t start = slice.has_start ? bounded(slice.start) : (is_forward ? lowest : highest);
  const int64_t stop = slice.has_stop ? bounded(slice.stop) : (is_forward ? highest : lowest);
  std::vector<size_t> indices;
  // Steps beyond the length are one step.
  const int64_t step = std::clamp<int64_t>(slice.step, -length - 1, length + 1);
  for (int64_t i = start; is_forward ? i < stop : i > stop; i += step)
    indices.push_back(static_cast<size_t>(i));
  return indices;
}

}  // namespace paceline
