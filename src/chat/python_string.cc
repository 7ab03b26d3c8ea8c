#include "chat/python_string.h"

#include <algorithm>

#include "base/utf8.h"
#include "chat/python_character.h"
#include "chat/template_runtime.h"

namespace paceline {
namespace {

bool is_line_end(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

bool has_character(std::string_view set, std::string_view character) {
  return set.find(character) != std::string_view::npos;
}

int64_t padding_on_the_left(Alignment alignment, int64_t missing, int64_t width) {
  if (alignment == Alignment::left) return 0;
  return alignment == Alignment::right ? missing : missing / 2 + (missing & width & 1);
}

}  // namespace

std::string_view last_character(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return text.substr(begin);
}

size_t end_of_spaces(std::string_view text, size_t from) {
  while (from < text.size()) {
    const DecodedCodePoint here = decode_utf8(text.substr(from));
    if (!is_python_space(here.code_point)) break;
    from += here.size;
  }
  return from;
}

size_t begin_of_last_spaces(std::string_view text) {
  while (!text.empty() && is_python_space(decode_utf8(last_character(text)).code_point)) {
    text.remove_suffix(last_character(text).size());
  }
  return text.size();
}

int64_t length_of(std::string_view text) { return count_code_points(text); }

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

std::string padded(TemplateRuntime& runtime, std::string_view text, int64_t width,
                   std::string_view fill, Alignment alignment) {
  const int64_t length = length_of(text);
  const int64_t missing = width > length ? width - length : 0;
  if (missing > 100'000) {
    throw TemplateError("a width beyond 100,000 characters", ErrorCode::exhausted);
  }
  runtime.charge(text.size() + static_cast<size_t>(missing) * fill.size());
  const int64_t left = padding_on_the_left(alignment, missing, width);
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += text;
  for (int64_t i = left; i < missing; ++i) out += fill;
  return out;
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
