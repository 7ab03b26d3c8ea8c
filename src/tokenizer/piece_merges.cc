#include "tokenizer/piece_merges.h"

#include <algorithm>
#include <tuple>

#include "base/utf8.h"
#include "tokenizer/vocabulary.h"

namespace paceline {
namespace {

struct PieceMerge {
  float score = 0;
  uint32_t left_length = 0;   // in code points
  uint32_t right_length = 0;  // in code points
  uint32_t whole = 0;         // index of the piece
  uint32_t left = 0;
  uint32_t right = 0;
};

// `index` maps pieces to their indices in the list.
void add_splits(const ScoredPiece& piece, uint32_t whole, const Vocabulary& index,
                std::vector<PieceMerge>& merges) {
  if (piece.text.size() > kMaxPieceBytes) return;
  const auto length = static_cast<uint32_t>(count_code_points(piece.text));
  size_t at = 0;
  for (uint32_t left_length = 1; left_length < length; ++left_length) {
    at += decode_utf8(piece.text.substr(at)).size;
    const auto left = index.find(piece.text.substr(0, at));
    if (!left) continue;
    const auto right = index.find(piece.text.substr(at));
    if (!right) continue;
    merges.push_back({.score = piece.score,
                      .left_length = left_length,
                      .right_length = length - left_length,
                      .whole = whole,
                      .left = static_cast<uint32_t>(*left),
                      .right = static_cast<uint32_t>(*right)});
  }
}

bool comes_before(const PieceMerge& a, const PieceMerge& b) {
  if (a.score != b.score) return a.score > b.score;
  if (a.left_length != b.left_length) return a.left_length > b.left_length;
  if (a.right_length != b.right_length) return a.right_length > b.right_length;
  return std::tie(a.whole, a.left, a.right) < std::tie(b.whole, b.left, b.right);
}

}  // namespace

std::vector<std::pair<std::string_view, std::string_view>> merges_of_pieces(
    std::span<const ScoredPiece> pieces) {
  Vocabulary index(pieces.size());
  std::vector<bool> counts;
  for (size_t i = 0; i < pieces.size(); ++i) {
    counts.push_back(index.insert(pieces[i].text, static_cast<TokenId>(i)) ==
                     Vocabulary::Inserted::yes);
  }
  std::vector<PieceMerge> merges;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (counts[i]) add_splits(pieces[i], static_cast<uint32_t>(i), index, merges);
  }
  std::sort(merges.begin(), merges.end(), comes_before);
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  pairs.reserve(merges.size());
  for (const PieceMerge& merge : merges) {
    pairs.emplace_back(pieces[merge.left].text, pieces[merge.right].text);
  }
  return pairs;
}

}  // namespace paceline
