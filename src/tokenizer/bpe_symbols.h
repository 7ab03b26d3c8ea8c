// BpeSymbols: the tokens that merging begins with, one for every character of a piece.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "paceline/tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace paceline {

// The options of `BPE` of HF tokenizers that change what it computes.
struct BpeOptions {
  bool ignore_merges = false;  // a piece that is a token isn't merged
  bool byte_fallback = false;  // a character without a token becomes its bytes' tokens, "<0x41>"
  bool fuse_unk = false;       // adjacent unknown characters become one token
  std::optional<std::string> unk_token;
  std::string continuing_subword_prefix;  // before every character but the first of a piece
  std::string end_of_word_suffix;         // behind the last
};

// Must agree with `merge_word` of HF's models/bpe. Immutable.
class BpeSymbols {
 public:
  enum class Characters { code_points, bytes };  // bytes: each is that of the byte-level alphabet
  // `vocabulary` must outlive it. Throws Error unsupported or corrupt naming the option that
  // doesn't fit the vocabulary; `where` names the file.
  BpeSymbols(const Vocabulary& vocabulary, const BpeOptions& options, Characters characters,
             std::string_view where);

  // Appends the symbols of a piece. Unless `sizes` is null, appends to it each symbol's number of
  // bytes in the piece as the vocabulary writes it. A character without a symbol is dropped when
  // there is no unk_token.
  void append(std::string_view piece, std::vector<TokenId>& symbols,
              std::vector<uint32_t>* sizes = nullptr) const;

  // Whether every code point of a piece, in any position, becomes its own token or the tokens of
  // its bytes.
  bool code_points_stand_alone() const;

 private:
  template <class Emit>
  void for_each(std::string_view piece, Emit emit) const;
  TokenId find(std::string_view character, bool first, bool last) const;  // -1: there is none
  template <class Emit>
  bool emit_bytes(std::string_view character, Emit emit) const;
  void index_code_points();
  void index_bytes();

  const Vocabulary& vocabulary_;
  Characters characters_;
  bool byte_fallback_;
  bool fuse_unk_;
  TokenId unk_ = -1;
  std::string prefix_;
  std::string suffix_;
  std::array<TokenId, 256> bytes_{};         // by byte; characters are bytes
  std::array<uint8_t, 256> byte_sizes_{};    // of the byte-level characters
  std::array<TokenId, 256> fallback_{};      // by byte
  std::array<uint16_t, 0x1100> block_of_{};  // blocks of code_points_, by code point / 256
  std::vector<TokenId> code_points_;         // blocks of 256; block 0 is empty
};

}  // namespace paceline
