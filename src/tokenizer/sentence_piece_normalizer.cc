#include "tokenizer/sentence_piece_normalizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/base64.h"
#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/made_fields.h"

namespace paceline {
namespace {

// A unit of darts-clone: a label, an offset to its children, whether a value is among them.
constexpr uint32_t kValueMask = 0x7FFFFFFF;
uint32_t label_of(uint32_t unit) { return unit & (0x80000000 | 0xFF); }
bool has_value(uint32_t unit) { return ((unit >> 8) & 1) != 0; }
size_t offset_of(uint32_t unit) { return size_t{unit >> 10} << ((unit & (1u << 9)) >> 6); }

void append_marked(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == ' ') {
      out += kSpaceMark;
    } else {
      out += c;
    }
  }
}

}  // namespace

CharsMap::CharsMap(std::string bytes, std::string_view where) : bytes_(std::move(bytes)) {
  uint32_t trie_bytes = 0;
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::corrupt, fmt::format("{}: precompiled_charsmap: {}", where, what));
  };
  if (bytes_.size() < sizeof(trie_bytes)) fail(fmt::format("{} bytes", bytes_.size()));
  std::memcpy(&trie_bytes, bytes_.data(), sizeof(trie_bytes));
  if (trie_bytes == 0 || trie_bytes % sizeof(uint32_t) != 0 ||
      trie_bytes > bytes_.size() - sizeof(trie_bytes)) {
    fail(fmt::format("a trie of {} bytes in {}", trie_bytes, bytes_.size()));
  }
  num_units_ = trie_bytes / sizeof(uint32_t);
  replacements_ = std::string_view(bytes_).substr(sizeof(trie_bytes) + trie_bytes);
  if (!replacements_.empty() && replacements_.back() != '\0') fail("no NUL at the end");
}

uint32_t CharsMap::unit(size_t index) const {
  uint32_t value = 0;
  std::memcpy(&value, bytes_.data() + sizeof(uint32_t) * (index + 1), sizeof(value));
  return value;
}

template <class Use>
void CharsMap::for_each_match(std::string_view text, Use use) const {
  size_t at = offset_of(unit(0));
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    at ^= byte;
    if (byte == 0 || at >= num_units_) break;
    const uint32_t child = unit(at);
    if (label_of(child) != byte) break;
    at ^= offset_of(child);
    if (!has_value(child)) continue;
    if (at >= num_units_) break;
    const size_t begin = unit(at) & kValueMask;
    if (begin >= replacements_.size()) break;
    const size_t end = replacements_.find('\0', begin);
    if (!use(Replacement{i + 1, replacements_.substr(begin, end - begin)})) break;
  }
}

std::optional<CharsMap::Replacement> CharsMap::find(std::string_view text) const {
  std::optional<Replacement> longest;
  for_each_match(text, [&longest](const Replacement& found) {
    longest = found;
    return true;
  });
  return longest;
}

std::optional<std::string_view> CharsMap::find_shortest(std::string_view text) const {
  std::optional<std::string_view> shortest;
  for_each_match(text, [&shortest](const Replacement& found) {
    shortest = found.text;
    return false;
  });
  return shortest;
}

// `kept` is the next kept text at or after an earlier place, if one was looked for.
CharsMap::Replacement SentencePieceNormalizer::replacement_at(
    std::string_view text, size_t at, std::optional<StringMatcher::Match>& kept) const {
  if (options_.kept) {
    if (!kept || kept->begin < at) {
      kept = options_.kept->find(text, at);
      if (!kept) kept = {text.size(), text.size(), 0};
    }
    if (kept->begin == at && kept->end > at) {
      return {kept->end - at, text.substr(at, kept->end - at)};
    }
  }
  const std::string_view rest = text.substr(at);
  if (options_.charsmap) {
    if (const auto found = options_.charsmap->find(rest)) return *found;
  }
  const size_t size = decode_utf8(rest).size;
  return {size, rest.substr(0, size)};
}

// The loop of sentencepiece: a replacement's leading spaces are dropped after a space, and at the
// beginning parts that are one space alone.
std::vector<SentencePieceNormalizer::Part> SentencePieceNormalizer::parts_of(
    std::string_view text) const {
  const bool removes = options_.remove_extra_whitespaces;
  std::vector<Part> parts;
  bool is_leading = removes;
  bool after_space = removes;
  std::optional<StringMatcher::Match> kept;
  for (size_t at = 0; at < text.size(); at += parts.back().size) {
    const CharsMap::Replacement found = replacement_at(text, at, kept);
    Part part{.size = found.size, .text = {}};
    is_leading = is_leading && found.text == " ";
    std::string_view rest = found.text;
    if (removes && after_space) {
      rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    }
    if (is_leading) rest = {};
    append_marked(part.text, rest);
    if (removes && !rest.empty()) after_space = rest.back() == ' ';
    parts.push_back(std::move(part));
  }
  for (size_t i = parts.size(); removes && i-- > 0;) {
    std::string& last = parts[i].text;
    while (last.ends_with(kSpaceMark)) last.resize(last.size() - kSpaceMark.size());
    if (!last.empty()) break;
  }
  return parts;
}

bool SentencePieceNormalizer::wants_prefix(std::string_view text, const TextStore& store) const {
  if (options_.prefix == Prefix::first) return store.at_start(text);
  return options_.prefix == Prefix::always;
}

std::string_view SentencePieceNormalizer::normalize(std::string_view text, TextStore& store) const {
  if (text.empty()) return text;
  const bool prefixed = wants_prefix(text, store);
  TextEdit edit(store, text);
  if (!options_.charsmap && !options_.remove_extra_whitespaces) {
    if (prefixed) edit.put_for_next(kSpaceMark);
    for (size_t space; (space = edit.rest().find(' ')) != std::string_view::npos;) {
      edit.keep(space);
      edit.put_for_next(kSpaceMark);
      edit.skip(1);
    }
    edit.keep(edit.rest().size());
    return edit.finish();
  }
  // A text of spaces becomes nothing, and then has no prefix.
  bool is_begun = !prefixed;
  if (!is_begun && !options_.remove_extra_whitespaces) {
    edit.put_for_next(kSpaceMark);
    is_begun = true;
  }
  for (const Part& part : parts_of(text)) {
    if (!is_begun && !part.text.empty()) {
      edit.put_for_next(kSpaceMark);
      is_begun = true;
    }
    if (part.text == edit.rest().substr(0, part.size)) {
      edit.keep(part.size);
      continue;
    }
    if (!part.text.empty()) edit.put_for_next(part.text);
    edit.skip(part.size);
  }
  return edit.finish();
}

std::unique_ptr<Normalizer> read_sentence_piece_normalizer(const DocumentCursor& field) {
  using Prefix = SentencePieceNormalizer::Prefix;
  SentencePieceNormalizer::Options options;
  options.remove_extra_whitespaces = field.at("remove_extra_whitespaces").boolean();
  const DocumentCursor prefix = field.at("prefix");
  const std::string_view name = prefix.string();
  if (name == "first") {
    options.prefix = Prefix::first;
  } else if (name == "never") {
    options.prefix = Prefix::never;
  } else if (name != "always") {
    prefix.mismatch("always, first or never");
  }
  if (const auto map = field.find("charsmap")) {
    auto bytes = bytes_of_base64(map->string());
    if (!bytes) map->mismatch("base64");
    options.charsmap = std::make_unique<CharsMap>(std::move(*bytes), map->where());
  }
  if (const auto kept = field.find("kept")) {
    std::vector<std::string_view> texts;
    for (const DocumentCursor& item : kept->items()) {
      texts.push_back(item.string());
      if (texts.back().empty()) item.mismatch("some text");
    }
    options.kept = std::make_unique<StringMatcher>(texts);
  }
  return std::make_unique<SentencePieceNormalizer>(std::move(options));
}

}  // namespace paceline
