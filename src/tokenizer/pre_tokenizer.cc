#include "tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <utility>

namespace paceline {
namespace {

// Joins parts of `text` to pieces, from the first part to the last, or backwards for
// merged_with_next, by the rules of NormalizedString::split of HF tokenizers.
class Joiner {
 public:
  explicit Joiner(SplitBehavior behavior) : behavior_(behavior) {}

  void add(const SplitPart& part) {
    const bool joins =
        behavior_ == SplitBehavior::contiguous
            ? part.is_match == previous_is_match_
            : behavior_ != SplitBehavior::isolated && part.is_match && !previous_is_match_;
    previous_is_match_ = part.is_match;
    if (behavior_ == SplitBehavior::removed) {
      if (!part.is_match) joined_.push_back(part);
    } else if (joins && !joined_.empty()) {
      joined_.back().begin = std::min(joined_.back().begin, part.begin);
      joined_.back().end = std::max(joined_.back().end, part.end);
    } else {
      joined_.push_back(part);
    }
  }

  const std::vector<SplitPart>& joined() const { return joined_; }

 private:
  SplitBehavior behavior_;
  bool previous_is_match_ = false;
  std::vector<SplitPart> joined_;
};

}  // namespace

void append_pieces(std::string_view text, const std::vector<SplitPart>& parts,
                   SplitBehavior behavior, std::vector<std::string_view>& pieces) {
  Joiner joiner(behavior);
  const auto append = [&](const SplitPart& part) {
    if (part.begin < part.end) pieces.push_back(text.substr(part.begin, part.end - part.begin));
  };
  if (behavior == SplitBehavior::merged_with_next) {
    std::for_each(parts.rbegin(), parts.rend(), [&](const SplitPart& part) { joiner.add(part); });
    std::for_each(joiner.joined().rbegin(), joiner.joined().rend(), append);
  } else {
    std::for_each(parts.begin(), parts.end(), [&](const SplitPart& part) { joiner.add(part); });
    std::for_each(joiner.joined().begin(), joiner.joined().end(), append);
  }
}

IsolatedSplit::IsolatedSplit(std::unique_ptr<SplitPattern> pattern)
    : pattern_(std::move(pattern)) {}

void IsolatedSplit::split(Pieces& pieces) const {
  std::vector<std::string_view> cut;
  cut.reserve(pieces.views.size());
  for (const std::string_view piece : pieces.views) pattern_->split(piece, cut);
  pieces.views = std::move(cut);
}

PatternSplit::PatternSplit(std::unique_ptr<TextPattern> pattern, SplitBehavior behavior,
                           Matches matches)
    : pattern_(std::move(pattern)), behavior_(behavior), matches_(matches) {}

void PatternSplit::split(Pieces& pieces) const {
  std::vector<std::string_view> cut;
  std::vector<TextPattern::Match> matches;
  std::vector<SplitPart> parts;
  const bool inverted = matches_ == Matches::inverted;
  for (const std::string_view piece : pieces.views) {
    pattern_->find_all(piece, matches);
    parts.clear();
    size_t done = 0;
    for (const TextPattern::Match& match : matches) {
      if (done < match.begin) parts.push_back({done, match.begin, inverted});
      parts.push_back({match.begin, match.end, !inverted});
      done = match.end;
    }
    if (done < piece.size()) parts.push_back({done, piece.size(), inverted});
    append_pieces(piece, parts, behavior_, cut);
  }
  pieces.views = std::move(cut);
}

void PrefixSpace::split(Pieces& pieces) const {
  for (std::string_view& piece : pieces.views) {
    if (piece.starts_with(' ')) continue;
    TextEdit edit(pieces.store, piece);
    edit.put_for_next(" ");
    edit.keep(piece.size());
    piece = edit.finish();
  }
}

PreTokenizerSequence::PreTokenizerSequence(std::vector<std::unique_ptr<PreTokenizer>> steps)
    : steps_(std::move(steps)) {}

void PreTokenizerSequence::split(Pieces& pieces) const {
  for (const auto& step : steps_) step->split(pieces);
}

}  // namespace paceline
