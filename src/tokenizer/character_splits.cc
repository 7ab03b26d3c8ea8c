#include "tokenizer/character_splits.h"

#include <algorithm>
#include <utility>

#include "tokenizer/text_normalizers.h"
#include "tokenizer/unicode_class.h"

namespace paceline {

void ClassSplit::split(Pieces& pieces) const {
  std::vector<std::string_view> cut;
  std::vector<SplitPart> parts;
  for (const std::string_view piece : pieces.views) {
    const ClassReader reader(piece, UnicodeClassTable::shared());
    parts.clear();
    for (size_t at = 0; at < piece.size();) {
      const size_t match = reader.end_of_run_without(at, classes_);
      if (at < match) parts.push_back({at, match, false});
      at = match;
      for (const size_t end = reader.end_of_run(match, classes_); at < end;) {
        const size_t next = at + reader.at(at).size;
        parts.push_back({at, next, true});
        at = next;
      }
    }
    append_pieces(piece, parts, behavior_, cut);
  }
  pieces.views = std::move(cut);
}

void WordSplit::split(Pieces& pieces) const {
  std::vector<std::string_view> cut;
  for (const std::string_view piece : pieces.views) {
    const ClassReader reader(piece, UnicodeClassTable::shared());
    for (size_t at = 0; at < piece.size();) {
      const bool is_word = (reader.at(at).classes & kWord) != 0;
      const size_t end =
          is_word ? reader.end_of_run(at, kWord) : reader.end_of_run_without(at, kWord | kSpace);
      if (at < end) cut.push_back(piece.substr(at, end - at));
      at = reader.end_of_run(end, kSpace);
    }
  }
  pieces.views = std::move(cut);
}

void ByteLevelMapping::split(Pieces& pieces) const {
  for (std::string_view& piece : pieces.views) {
    piece = ByteLevelNormalizer().normalize(piece, pieces.store);
  }
}

std::string_view MetaspaceSplit::replace(std::string_view piece, TextStore& store) const {
  const std::string_view mark = options_.replacement;
  const bool wanted = options_.prepend == Prepend::always ||
                      (options_.prepend == Prepend::first && store.at_start(piece));
  const bool prepend = wanted && !piece.starts_with(' ') && !piece.starts_with(mark);
  if (!prepend && piece.find(' ') == std::string_view::npos) return piece;
  TextEdit edit(store, piece);
  if (prepend) edit.put_for_next(mark);
  for (;;) {
    const size_t space = edit.rest().find(' ');
    if (space == std::string_view::npos) break;
    edit.keep(space);
    edit.put_for_next(mark);
    edit.skip(1);
  }
  edit.keep(edit.rest().size());
  return edit.finish();
}

void MetaspaceSplit::split(Pieces& pieces) const {
  std::vector<std::string_view> cut;
  cut.reserve(pieces.views.size());
  for (const std::string_view piece : pieces.views) {
    const std::string_view text = replace(piece, pieces.store);
    if (!options_.split) {
      cut.push_back(text);
      continue;
    }
    size_t begin = 0;
    while (begin < text.size()) {
      const size_t next = std::min(text.find(options_.replacement, begin + 1), text.size());
      cut.push_back(text.substr(begin, next - begin));
      begin = next;
    }
  }
  pieces.views = std::move(cut);
}

}  // namespace paceline
