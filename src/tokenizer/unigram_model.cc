#include "tokenizer/unigram_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/utf8.h"

namespace paceline {
namespace {

// As sentencepiece has them. An unknown character is worse than the worst token.
constexpr float kUnknownPenalty = 10.0f;
// Of a user-defined token for each byte but the first: it is always better than others.
constexpr double kUserDefinedBonus = 0.1;
// Sums in float32 that are larger begin anew, so that they stay exact in long texts.
constexpr float kLargestSum = 100000.0f;
constexpr TokenId kUnknownCharacter = -1;

// The best tokens that end at a place between two characters.
template <class Sum>
struct Place {
  Sum sum = 0;
  uint32_t begin = UINT32_MAX;  // of the last token; none yet
  TokenId id = kUnknownCharacter;

  void reach(size_t from, TokenId token, Sum total) {
    if (begin != UINT32_MAX && total <= sum) return;
    *this = {total, static_cast<uint32_t>(from), token};
  }
};

}  // namespace

UnigramModel::UnigramModel(const Vocabulary& vocabulary, const std::vector<double>& scores,
                           const Options& options)
    : unknown_(options.unknown), byte_fallback_(options.byte_fallback), sums_(options.sums) {
  const auto has = [](const std::vector<TokenId>& ids, TokenId id) {
    return std::binary_search(ids.begin(), ids.end(), id);
  };
  const bool matches_unknown = options.sums == Sums::in_float64;
  double lowest = std::numeric_limits<float>::max();
  size_t num_bytes = 0;
  const auto limit = static_cast<TokenId>(scores.size());
  for (TokenId id = 0; id < limit; ++id) num_bytes += vocabulary.text(id).size();
  tokens_ = PrefixTable(num_bytes);
  for (TokenId id = 0; id < limit; ++id) {
    if (!vocabulary.contains(id) || has(options.unmatched, id)) continue;
    if (id == unknown_ && !matches_unknown) continue;
    const std::string_view text = vocabulary.text(id);
    const double score = scores[static_cast<size_t>(id)];
    if (has(options.user_defined, id)) {
      const auto further = static_cast<double>(text.size() - 1);
      tokens_.add(text, id, static_cast<float>(kUserDefinedBonus * further));
    } else {
      tokens_.add(text, id == unknown_ ? kUnknownCharacter : id, score);
      lowest = std::min(lowest, score);
    }
  }
  tokens_.finish();
  unknown_score_ =
      matches_unknown ? lowest - kUnknownPenalty : static_cast<float>(lowest) - kUnknownPenalty;
  for (size_t byte = 0; byte < bytes_.size(); ++byte) {
    bytes_[byte] = vocabulary.find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  }
}

void UnigramModel::append_unknown(std::string_view character, std::vector<TokenId>& ids,
                                  std::vector<uint32_t>* sizes) const {
  const auto has_token = [&](char c) { return bytes_[static_cast<uint8_t>(c)] >= 0; };
  if (byte_fallback_ && std::all_of(character.begin(), character.end(), has_token)) {
    for (const char c : character) {
      ids.push_back(bytes_[static_cast<uint8_t>(c)]);
      if (sizes != nullptr) sizes->push_back(1);
    }
    return;
  }
  if (unknown_ < 0) return;
  const auto size = static_cast<uint32_t>(character.size());
  ids.push_back(unknown_);
  if (sizes != nullptr) sizes->push_back(size);
}

template <class Sum>
void UnigramModel::segment(std::string_view piece, std::vector<TokenId>& ids,
                           std::vector<uint32_t>* sizes) const {
  std::vector<Place<Sum>> places(piece.size() + 1);
  size_t furthest = 0;  // place that was reached
  for (size_t at = 0; at < piece.size();) {
    if constexpr (std::is_same_v<Sum, float>) {
      const float sum = places[at].sum;
      const bool is_large = std::abs(sum) > kLargestSum;
      for (size_t i = at; is_large && i <= furthest; ++i) places[i].sum -= sum;
    }
    const std::string_view rest = piece.substr(at);
    const size_t size = decode_utf8(rest).size;
    bool has_single = false;
    tokens_.for_each_prefix(rest, [&](const PrefixTable::Entry& entry) {
      const Sum sum = static_cast<Sum>(entry.score) + places[at].sum;
      const size_t end = at + entry.text.size();
      places[end].reach(at, entry.id, sum);
      furthest = std::max(furthest, end);
      has_single = has_single || entry.text.size() == size;
    });
    if (!has_single) {
      places[at + size].reach(at, kUnknownCharacter,
                              static_cast<Sum>(unknown_score_) + places[at].sum);
      furthest = std::max(furthest, at + size);
    }
    at += size;
  }
  std::vector<std::pair<uint32_t, TokenId>> path;  // from the end: where a token begins
  for (size_t end = piece.size(); end > 0; end = places[end].begin) {
    path.emplace_back(places[end].begin, places[end].id);
  }
  bool after_unknown = false;  // adjacent unknown characters become one token
  for (size_t i = path.size(); i-- > 0;) {
    const auto [begin, id] = path[i];
    const size_t end = i == 0 ? piece.size() : path[i - 1].first;
    const std::string_view text = piece.substr(begin, end - begin);
    if (id != kUnknownCharacter) {
      ids.push_back(id);
      if (sizes != nullptr) sizes->push_back(static_cast<uint32_t>(text.size()));
    } else if (after_unknown && !byte_fallback_ && unknown_ >= 0) {
      if (sizes != nullptr) sizes->back() += static_cast<uint32_t>(text.size());
    } else {
      append_unknown(text, ids, sizes);
    }
    after_unknown = id == kUnknownCharacter;
  }
}

void UnigramModel::append(std::string_view piece, std::vector<TokenId>& ids,
                          std::vector<uint32_t>* sizes) const {
  if (piece.empty()) return;
  if (sums_ == Sums::in_float32) {
    segment<float>(piece, ids, sizes);
  } else {
    segment<double>(piece, ids, sizes);
  }
}

}  // namespace paceline
