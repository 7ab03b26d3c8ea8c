#include "tokenizer/text_normalizers.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/utf8.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/unicode_class.h"
#include "tokenizer/unicode_lowercase.h"

namespace paceline {
namespace {

constexpr char32_t kDottedCapitalI = 0x130;

// Calls `rewrite(edit, character, size)` for each character of a text; characters before
// `first_changed` are kept without a call.
template <class Rewrite>
std::string_view rewrite_characters(std::string_view text, size_t first_changed, TextStore& store,
                                    Rewrite rewrite) {
  if (first_changed == text.size()) return text;
  TextEdit edit(store, text);
  edit.keep(first_changed);
  while (!edit.rest().empty()) {
    const DecodedCodePoint character = decode_utf8(edit.rest());
    rewrite(edit, character.code_point, character.size);
  }
  return edit.finish();
}

template <class IsChanged>
size_t find_character(std::string_view text, IsChanged is_changed) {
  size_t offset = 0;
  while (offset < text.size()) {
    const DecodedCodePoint character = decode_utf8(text.substr(offset));
    if (is_changed(character.code_point)) break;
    offset += character.size;
  }
  return offset;
}

char32_t lowercase(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
  const LowercaseRun* end = kLowercaseRuns + kNumLowercaseRuns;
  const LowercaseRun* run =
      std::lower_bound(kLowercaseRuns, end, c,
                       [](const LowercaseRun& one, char32_t value) { return one.last < value; });
  if (run == end || c < run->first || (c - run->first) % run->step != 0) return c;
  return static_cast<char32_t>(static_cast<int64_t>(c) + run->delta);
}

bool is_removed_by_nmt(char32_t c) {
  return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
         c == 0x8F || c == 0x9F;
}

bool is_space_for_nmt(char32_t c) {
  constexpr std::array<char32_t, 10> kSpaces = {0x09,   0x0A,   0x0C,   0x0D,   0x1680,
                                                0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD};
  return (c >= 0x200B && c <= 0x200F) ||
         std::find(kSpaces.begin(), kSpaces.end(), c) != kSpaces.end();
}

}  // namespace

std::string_view PrependNormalizer::normalize(std::string_view text, TextStore& store) const {
  if (text.empty() || prefix_.empty()) return text;
  TextEdit edit(store, text);
  edit.put_for_next(prefix_);
  edit.keep(text.size());
  return edit.finish();
}

std::string_view ReplaceNormalizer::normalize(std::string_view text, TextStore& store) const {
  std::vector<TextPattern::Match> matches;
  pattern_->find_all(text, matches);
  if (matches.empty()) return text;
  TextEdit edit(store, text);
  size_t done = 0;
  for (const TextPattern::Match& match : matches) {
    edit.keep(match.begin - done);
    edit.skip(match.end - match.begin);
    edit.put_for_previous(content_);
    done = match.end;
  }
  edit.keep(text.size() - done);
  return edit.finish();
}

std::string_view StripNormalizer::normalize(std::string_view text, TextStore& store) const {
  const ClassReader reader(text, UnicodeClassTable::shared());
  const size_t begin = sides_.left ? reader.end_of_run(0, kSpace) : 0;
  size_t end = text.size();
  while (sides_.right && end > begin && (reader.at(reader.before(end)).classes & kSpace) != 0) {
    end = reader.before(end);
  }
  if (begin == 0 && end == text.size()) return text;
  TextEdit edit(store, text);
  edit.skip(begin);
  edit.keep(end - begin);
  edit.skip(text.size() - end);
  return edit.finish();
}

std::string_view StripAccentsNormalizer::normalize(std::string_view text, TextStore& store) const {
  const UnicodeClassTable& table = UnicodeClassTable::shared();
  const auto is_accent = [&](char32_t c) { return (table.of(c) & kAccent) != 0; };
  return rewrite_characters(text, find_character(text, is_accent), store,
                            [&](TextEdit& edit, char32_t c, size_t size) {
                              is_accent(c) ? edit.skip(size) : edit.keep(size);
                            });
}

std::string_view LowercaseNormalizer::normalize(std::string_view text, TextStore& store) const {
  const auto is_changed = [](char32_t c) { return c == kDottedCapitalI || lowercase(c) != c; };
  std::string lower;
  return rewrite_characters(text, find_character(text, is_changed), store,
                            [&](TextEdit& edit, char32_t c, size_t size) {
                              if (!is_changed(c)) return edit.keep(size);
                              lower.clear();
                              append_utf8(lower, c == kDottedCapitalI ? U'i' : lowercase(c));
                              if (c == kDottedCapitalI) append_utf8(lower, 0x307);
                              edit.put_for_next(lower);
                              edit.skip(size);
                            });
}

std::string_view NmtNormalizer::normalize(std::string_view text, TextStore& store) const {
  const auto is_changed = [](char32_t c) { return is_removed_by_nmt(c) || is_space_for_nmt(c); };
  return rewrite_characters(text, find_character(text, is_changed), store,
                            [](TextEdit& edit, char32_t c, size_t size) {
                              if (is_space_for_nmt(c)) edit.put_for_next(" ");
                              if (is_removed_by_nmt(c) || is_space_for_nmt(c)) {
                                edit.skip(size);
                              } else {
                                edit.keep(size);
                              }
                            });
}

std::string_view ByteLevelNormalizer::normalize(std::string_view text, TextStore& store) const {
  std::string mapped;
  return rewrite_characters(text, 0, store, [&](TextEdit& edit, char32_t, size_t size) {
    mapped.clear();
    for (const char byte : edit.rest().substr(0, size)) {
      mapped += byte_level_character(static_cast<uint8_t>(byte));
    }
    edit.put_for_next(mapped);
    edit.skip(size);
  });
}

}  // namespace paceline
