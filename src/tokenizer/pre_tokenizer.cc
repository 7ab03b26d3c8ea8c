#include "tokenizer/pre_tokenizer.h"

#include <utility>

namespace paceline {

IsolatedSplit::IsolatedSplit(std::unique_ptr<SplitPattern> pattern)
    : pattern_(std::move(pattern)) {}

void IsolatedSplit::split(Pieces& pieces) const {
  std::vector<std::string_view> cut;
  cut.reserve(pieces.views.size());
  for (const std::string_view piece : pieces.views) pattern_->split(piece, cut);
  pieces.views = std::move(cut);
}

void PrefixSpace::split(Pieces& pieces) const {
  for (std::string_view& piece : pieces.views) {
    if (piece.starts_with(' ')) continue;
    std::string& prefixed = pieces.owned.emplace_back();
    prefixed.reserve(piece.size() + 1);
    prefixed.push_back(' ');
    prefixed.append(piece);
    piece = prefixed;
  }
}

PreTokenizerSequence::PreTokenizerSequence(std::vector<std::unique_ptr<PreTokenizer>> steps)
    : steps_(std::move(steps)) {}

void PreTokenizerSequence::split(Pieces& pieces) const {
  for (const auto& step : steps_) step->split(pieces);
}

}  // namespace paceline
