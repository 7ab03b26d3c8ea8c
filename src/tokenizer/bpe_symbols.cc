#include "tokenizer/bpe_symbols.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/byte_level.h"

namespace paceline {
namespace {

constexpr size_t kCodePointBlock = 256;

size_t character_size(char lead) {
  const auto byte = static_cast<uint8_t>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

}  // namespace

BpeSymbols::BpeSymbols(const Vocabulary& vocabulary, const BpeOptions& options,
                       Characters characters, std::string_view where)
    : vocabulary_(vocabulary),
      characters_(characters),
      byte_fallback_(options.byte_fallback),
      fuse_unk_(options.fuse_unk),
      prefix_(options.continuing_subword_prefix),
      suffix_(options.end_of_word_suffix) {
  for (size_t byte = 0; byte < bytes_.size(); ++byte) {
    const std::string_view character = byte_level_character(static_cast<uint8_t>(byte));
    bytes_[byte] = vocabulary.find(character).value_or(-1);
    byte_sizes_[byte] = static_cast<uint8_t>(character.size());
    fallback_[byte] = vocabulary.find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  }
  const bool affixed = !prefix_.empty() || !suffix_.empty();
  const bool all_known = characters == Characters::bytes && !affixed &&
                         std::find(bytes_.begin(), bytes_.end(), -1) == bytes_.end();
  if (characters == Characters::code_points) index_code_points();
  if (all_known) return;
  const bool can_fall_back =
      std::any_of(fallback_.begin(), fallback_.end(), [](TokenId token) { return token >= 0; });
  byte_fallback_ = byte_fallback_ && can_fall_back;
  if (byte_fallback_ && (affixed || characters == Characters::bytes)) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: model.byte_fallback together with {} isn't supported", where,
                            affixed ? "a prefix or suffix"
                                    : "ByteLevel and a vocabulary that lacks bytes"));
  }
  if (!options.unk_token) return;
  const auto unk = vocabulary.find(*options.unk_token);
  if (!unk) {
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: model.unk_token: \"{}\" isn't in the vocabulary", where,
                            *options.unk_token));
  }
  unk_ = *unk;
}

void BpeSymbols::index_code_points() {
  code_points_.assign(kCodePointBlock, -1);
  for (size_t i = 0; i < vocabulary_.id_limit(); ++i) {
    const std::string_view text = vocabulary_.text(static_cast<TokenId>(i));
    if (text.empty() || text.size() != character_size(text.front())) continue;
    const char32_t code_point = decode_utf8(text).code_point;
    uint16_t& block = block_of_[code_point / kCodePointBlock];
    if (block == 0) {
      block = static_cast<uint16_t>(code_points_.size() / kCodePointBlock);
      code_points_.resize(code_points_.size() + kCodePointBlock, -1);
    }
    code_points_[block * kCodePointBlock + code_point % kCodePointBlock] = static_cast<TokenId>(i);
  }
}

TokenId BpeSymbols::find(std::string_view character, bool first, bool last) const {
  const bool has_prefix = !first && !prefix_.empty();
  const bool has_suffix = last && !suffix_.empty();
  if (has_prefix || has_suffix) {
    std::string text = has_prefix ? prefix_ : std::string();
    if (characters_ == Characters::bytes) {
      text += byte_level_character(static_cast<uint8_t>(character.front()));
    } else {
      text += character;
    }
    if (has_suffix) text += suffix_;
    return vocabulary_.find(text).value_or(-1);
  }
  if (characters_ == Characters::bytes) return bytes_[static_cast<uint8_t>(character.front())];
  const char32_t code_point = decode_utf8(character).code_point;
  const size_t block = block_of_[code_point / kCodePointBlock];
  return code_points_[block * kCodePointBlock + code_point % kCodePointBlock];
}

bool BpeSymbols::code_points_stand_alone() const {
  const bool any_byte = std::find(fallback_.begin(), fallback_.end(), -1) == fallback_.end();
  return characters_ == Characters::code_points && prefix_.empty() && suffix_.empty() &&
         byte_fallback_ && any_byte;
}

template <class Emit>
bool BpeSymbols::emit_bytes(std::string_view character, Emit emit) const {
  const auto token_of = [&](char byte) { return fallback_[static_cast<uint8_t>(byte)]; };
  for (const char byte : character) {
    if (token_of(byte) < 0) return false;
  }
  for (const char byte : character) emit(token_of(byte), 1);
  return true;
}

template <class Emit>
void BpeSymbols::for_each(std::string_view piece, Emit emit) const {
  uint32_t unknown = 0;  // bytes of unknown characters that have no token yet
  const auto end_unknown = [&] {
    if (unknown > 0) emit(unk_, unknown);
    unknown = 0;
  };
  for (size_t begin = 0; begin < piece.size();) {
    const size_t size = characters_ == Characters::bytes ? 1 : character_size(piece[begin]);
    const std::string_view character = piece.substr(begin, size);
    const TokenId symbol = find(character, begin == 0, begin + size == piece.size());
    begin += size;
    const auto written_size = static_cast<uint32_t>(
        characters_ == Characters::bytes ? byte_sizes_[static_cast<uint8_t>(character.front())]
                                         : size);
    if (symbol >= 0) {
      end_unknown();
      emit(symbol, written_size);
      continue;
    }
    // In HF tokenizers bytes overtake an unknown character before them.
    if (byte_fallback_ && emit_bytes(character, emit)) continue;
    if (unk_ < 0) continue;
    if (!fuse_unk_) end_unknown();
    unknown += written_size;
  }
  end_unknown();
}

void BpeSymbols::append(std::string_view piece, std::vector<TokenId>& symbols,
                        std::vector<uint32_t>* sizes) const {
  if (sizes == nullptr) {
    for_each(piece, [&](TokenId symbol, uint32_t) { symbols.push_back(symbol); });
    return;
  }
  for_each(piece, [&](TokenId symbol, uint32_t size) {
    symbols.push_back(symbol);
    sizes->push_back(size);
  });
}

}  // namespace paceline
