// UnigramModel: the tokens of a piece whose scores have the greatest sum.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "paceline/tokenizer.h"
#include "tokenizer/prefix_table.h"
#include "tokenizer/vocabulary.h"

namespace paceline {

// Kudo, "Subword Regularization" (2018), section 3.2, by the algorithm of Viterbi. Must agree with
// unigram::Model::EncodeOptimized of sentencepiece 0.2.3, whose sums are float32; those of HF
// tokenizers are float64, and its unknown token can be written in a text. Immutable.
class UnigramModel {
 public:
  enum class Sums : uint8_t { in_float32, in_float64 };
  struct Options {
    TokenId unknown = -1;        // of a character that no token has; -1: it is dropped
    bool byte_fallback = false;  // such a character becomes its bytes' tokens, "<0x41>"
    Sums sums = Sums::in_float64;
    std::vector<TokenId> unmatched = {};     // ascending: tokens that no text becomes
    std::vector<TokenId> user_defined = {};  // ascending: their score grows with their length
  };

  // `scores` are by id.
  UnigramModel(const Vocabulary& vocabulary, const std::vector<double>& scores,
               const Options& options);

  // Appends the tokens of well-formed UTF-8. Unless `sizes` is null, appends each token's number of
  // bytes in the piece to it.
  void append(std::string_view piece, std::vector<TokenId>& ids,
              std::vector<uint32_t>* sizes = nullptr) const;

 private:
  template <class Sum>
  void segment(std::string_view piece, std::vector<TokenId>& ids,
               std::vector<uint32_t>* sizes) const;
  void append_unknown(std::string_view character, std::vector<TokenId>& ids,
                      std::vector<uint32_t>* sizes) const;

  PrefixTable tokens_;
  double unknown_score_ = 0;
  TokenId unknown_ = -1;
  bool byte_fallback_ = false;
  Sums sums_;
  std::array<TokenId, 256> bytes_{};  // -1: there is no token
};

}  // namespace paceline
