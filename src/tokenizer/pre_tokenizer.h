// Pre-tokenizers cut text into pieces; merging never crosses the border of a piece.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/split_pattern.h"

namespace paceline {

// The pieces of one call and the strings made for them: views stay valid as long as this lives.
struct Pieces {
  std::vector<std::string_view> views;  // none is empty
  std::deque<std::string> owned;
};

// Immutable; any number of threads may use it at once.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Replaces pieces.views, each by what it is cut into.
  virtual void split(Pieces& pieces) const = 0;
};

// HF `Split` with behavior Isolated: the matches, and what stands between them, are pieces of their
// own.
class IsolatedSplit final : public PreTokenizer {
 public:
  explicit IsolatedSplit(std::unique_ptr<SplitPattern> pattern);
  void split(Pieces& pieces) const override;

 private:
  std::unique_ptr<SplitPattern> pattern_;
};

// HF `ByteLevel` with add_prefix_space: a piece that doesn't begin with a space gets one.
class PrefixSpace final : public PreTokenizer {
 public:
  void split(Pieces& pieces) const override;
};

// One after the other; none at all leaves the text in one piece.
class PreTokenizerSequence final : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<std::unique_ptr<PreTokenizer>> steps);
  void split(Pieces& pieces) const override;

 private:
  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

}  // namespace paceline
