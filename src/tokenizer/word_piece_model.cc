#include "tokenizer/word_piece_model.h"

#include <algorithm>

namespace paceline {
namespace {

PrefixTable table_of(const Vocabulary& vocabulary, std::string_view prefix) {
  const auto limit = static_cast<TokenId>(vocabulary.id_limit());
  size_t num_bytes = 0;
  for (TokenId id = 0; id < limit; ++id) num_bytes += vocabulary.text(id).size();
  PrefixTable table(num_bytes);
  for (TokenId id = 0; id < limit; ++id) {
    const std::string_view text = vocabulary.text(id);
    if (text.size() > prefix.size() && text.starts_with(prefix)) {
      table.add(text.substr(prefix.size()), id, 0);
    }
  }
  table.finish();
  return table;
}

}  // namespace

WordPieceModel::WordPieceModel(const Vocabulary& vocabulary, const Options& options)
    : first_(table_of(vocabulary, "")),
      inside_(table_of(vocabulary, options.prefix)),
      unknown_(options.unknown),
      max_characters_(options.max_input_chars_per_word) {}

void WordPieceModel::append(std::string_view word, std::vector<TokenId>& ids,
                            std::vector<uint32_t>* sizes) const {
  const size_t num_ids = ids.size();
  const size_t num_sizes = sizes == nullptr ? 0 : sizes->size();
  const auto become_unknown = [&] {
    ids.resize(num_ids);
    ids.push_back(unknown_);
    if (sizes == nullptr) return;
    sizes->resize(num_sizes);
    sizes->push_back(static_cast<uint32_t>(word.size()));
  };
  const auto begins_character = [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; };
  if (word.size() > max_characters_ &&
      static_cast<size_t>(std::count_if(word.begin(), word.end(), begins_character)) >
          max_characters_) {
    return become_unknown();
  }
  for (size_t at = 0; at < word.size();) {
    const PrefixTable::Entry* longest = nullptr;
    const PrefixTable& table = at == 0 ? first_ : inside_;
    table.for_each_prefix(word.substr(at), [&](const auto& entry) { longest = &entry; });
    if (longest == nullptr) return become_unknown();
    ids.push_back(longest->id);
    if (sizes != nullptr) sizes->push_back(static_cast<uint32_t>(longest->text.size()));
    at += longest->text.size();
  }
}

}  // namespace paceline
