// Derives merges from a sentencepiece vocabulary, which has only pieces and scores.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace paceline {

struct ScoredPiece {
  std::string_view text;  // well-formed UTF-8
  float score = 0;        // not NaN
};

// Longer pieces are ignored: the work grows with the square of the length.
constexpr size_t kMaxPieceBytes = 1024;

// All pairs of pieces that make a third one, ordered by the score of the whole (highest first),
// then by the length of the left part in code points (longest first), then by the index of the
// whole, as in transformers (SentencePieceExtractor). Of pieces with equal text the first counts.
// At most kMaxTokenIds pieces.
std::vector<std::pair<std::string_view, std::string_view>> merges_of_pieces(
    std::span<const ScoredPiece> pieces);

}  // namespace paceline
