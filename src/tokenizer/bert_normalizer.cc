#include "tokenizer/bert_normalizer.h"

#include <algorithm>
#include <string>

#include "base/utf8.h"
#include "tokenizer/encoder_class.h"

namespace paceline {
namespace {

bool is_ascii_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<uint8_t>(c) < 128; });
}

// Calls `rewrite(edit, text, classes)` for each character with one of `classes`; the others stay.
template <class Rewrite>
std::string_view rewrite_class(std::string_view text, uint8_t classes, TextStore& store,
                               Rewrite rewrite) {
  const EncoderClassTable& table = EncoderClassTable::shared();
  const auto find = [&](size_t from) {
    while (from < text.size()) {
      const DecodedCodePoint character = decode_utf8(text.substr(from));
      if ((table.of(character.code_point) & classes) != 0) break;
      from += character.size;
    }
    return from;
  };
  size_t at = find(0);
  if (at == text.size()) return text;
  TextEdit edit(store, text);
  edit.keep(at);
  while (at < text.size()) {
    const DecodedCodePoint character = decode_utf8(text.substr(at));
    rewrite(edit, text.substr(at, character.size), table.of(character.code_point));
    edit.skip(character.size);
    at += character.size;
    const size_t next = find(at);
    edit.keep(next - at);
    at = next;
  }
  return edit.finish();
}

std::string_view clean(std::string_view text, TextStore& store) {
  return rewrite_class(text, kBertRemoved | kBertSpace, store,
                       [](TextEdit& edit, std::string_view, uint8_t classes) {
                         if ((classes & kBertSpace) != 0) edit.put_for_next(" ");
                       });
}

std::string_view space_chinese(std::string_view text, TextStore& store) {
  std::string spaced;
  return rewrite_class(text, kBertChinese, store,
                       [&](TextEdit& edit, std::string_view character, uint8_t) {
                         spaced.assign(1, ' ').append(character).push_back(' ');
                         edit.put_for_next(spaced);
                       });
}

std::string_view strip_marks(std::string_view text, TextStore& store) {
  return rewrite_class(text, kNonspacingMark, store, [](TextEdit&, std::string_view, uint8_t) {});
}

}  // namespace

// Without spans, ASCII is written in one pass.
std::string_view BertNormalizer::normalize_ascii(std::string_view text, TextStore& store) const {
  const EncoderClassTable& table = EncoderClassTable::shared();
  std::string made;
  made.reserve(text.size());
  for (const char c : text) {
    const uint8_t classes = options_.clean_text ? table.of(static_cast<uint8_t>(c)) : 0;
    if ((classes & kBertRemoved) != 0) continue;
    const bool lowers = options_.lowercase && c >= 'A' && c <= 'Z';
    made += (classes & kBertSpace) != 0 ? ' ' : lowers ? static_cast<char>(c + ('a' - 'A')) : c;
  }
  if (made == text) return text;
  TextEdit edit(store, text);
  edit.put_for_next(made);
  edit.skip(text.size());
  return edit.finish();
}

std::string_view BertNormalizer::normalize(std::string_view text, TextStore& store) const {
  if (!store.tracked() && is_ascii_text(text)) return normalize_ascii(text, store);
  if (options_.clean_text) text = clean(text, store);
  if (options_.handle_chinese_chars) text = space_chinese(text, store);
  if (options_.strip_accents) text = strip_marks(decompose_.normalize(text, store), store);
  return options_.lowercase ? lower_.normalize(text, store) : text;
}

}  // namespace paceline
