// Pre-tokenizers cut text into pieces; merging never crosses the border of a piece.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/split_pattern.h"
#include "tokenizer/text_pattern.h"
#include "tokenizer/text_store.h"

namespace paceline {

struct Pieces {
  std::vector<std::string_view> views;
  TextStore& store;  // holds what was made for them
};

// Immutable; any number of threads may use it at once. Each must agree with the pre-tokenizer of
// its name of HF tokenizers.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Replaces pieces.views, each by what it is cut into; none is empty.
  virtual void split(Pieces& pieces) const = 0;
};

// The place of the matches at which a text is cut. "a--b" at every "-":
enum class SplitBehavior {
  removed,               // a b
  isolated,              // a - - b
  merged_with_previous,  // a- - b
  merged_with_next,      // a - -b
  contiguous,            // a -- b
};

// A stretch of a text that is a match, or stands between matches.
struct SplitPart {
  size_t begin = 0;
  size_t end = 0;
  bool is_match = false;
};

// Appends the pieces that the parts of `text`, in order and without a gap, are put together to.
void append_pieces(std::string_view text, const std::vector<SplitPart>& parts,
                   SplitBehavior behavior, std::vector<std::string_view>& pieces);

// `Split` with behavior Isolated: the matches, and what stands between them, are pieces of their
// own.
class IsolatedSplit final : public PreTokenizer {
 public:
  explicit IsolatedSplit(std::unique_ptr<SplitPattern> pattern);
  void split(Pieces& pieces) const override;

 private:
  std::unique_ptr<SplitPattern> pattern_;
};

// `Split` with any behavior.
class PatternSplit final : public PreTokenizer {
 public:
  enum class Matches { as_found, inverted };
  PatternSplit(std::unique_ptr<TextPattern> pattern, SplitBehavior behavior, Matches matches);
  void split(Pieces& pieces) const override;

 private:
  std::unique_ptr<TextPattern> pattern_;
  SplitBehavior behavior_;
  Matches matches_;
};

// `ByteLevel` with add_prefix_space: a piece that doesn't begin with a space gets one.
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
