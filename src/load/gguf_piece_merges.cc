#include "load/gguf_piece_merges.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/utf8.h"

namespace paceline {
namespace {

struct Merge {
  float score = 0;
  uint32_t left_length = 0;   // in code points
  uint32_t right_length = 0;  // in code points
  uint32_t whole = 0;         // index of the piece
  uint32_t left = 0;
  uint32_t right = 0;
};

using PieceIndex = std::unordered_map<std::string_view, uint32_t>;

void add_splits(const ScoredPiece& piece, uint32_t whole, const PieceIndex& index,
                std::vector<Merge>& merges) {
  if (piece.text.size() > kMaxPieceBytes) return;
  const auto length = static_cast<uint32_t>(count_code_points(piece.text));
  size_t at = 0;
  for (uint32_t left_length = 1; left_length < length; ++left_length) {
    at += decode_utf8(piece.text.substr(at)).size;
    const auto left = index.find(piece.text.substr(0, at));
    if (left == index.end()) continue;
    const auto right = index.find(piece.text.substr(at));
    if (right == index.end()) continue;
    merges.push_back({.score = piece.score,
                      .left_length = left_length,
                      .right_length = length - left_length,
                      .whole = whole,
                      .left = left->second,
                      .right = right->second});
  }
}

bool comes_before(const Merge& a, const Merge& b) {
  if (a.score != b.score) return a.score > b.score;
  if (a.left_length != b.left_length) return a.left_length > b.left_length;
  if (a.right_length != b.right_length) return a.right_length > b.right_length;
  return std::tie(a.whole, a.left, a.right) < std::tie(b.whole, b.left, b.right);
}

}  // namespace

std::vector<std::pair<std::string_view, std::string_view>> merges_of_pieces(
    std::span<const ScoredPiece> pieces) {
  PieceIndex index;
  index.reserve(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    index.emplace(pieces[i].text, static_cast<uint32_t>(i));
  }
  std::vector<Merge> merges;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto whole = static_cast<uint32_t>(i);
    if (index.at(pieces[i].text) == whole) add_splits(pieces[i], whole, index, merges);
  }
  std::sort(merges.begin(), merges.end(), comes_before);
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  pairs.reserve(merges.size());
  for (const Merge& merge : merges) {
    pairs.emplace_back(pieces[merge.left].text, pieces[merge.right].text);
  }
  return pairs;
}

}  // namespace paceline
