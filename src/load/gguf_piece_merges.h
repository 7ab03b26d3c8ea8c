// The merges of a sentencepiece vocabulary, which has only pieces and their scores.
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

// Longer pieces are no piece: the work grows with the square of the length.
constexpr size_t kMaxPieceBytes = 1024;

// Every way in which two pieces together are a third one, the best first: higher score of the
// whole, then the longer left part, in code points, then the earlier piece. It is the order in
// which transformers writes such merges (SentencePieceExtractor). Of pieces with the same text the
// first counts. At most kMaxTokenIds pieces.
std::vector<std::pair<std::string_view, std::string_view>> merges_of_pieces(
    std::span<const ScoredPiece> pieces);

}  // namespace paceline
