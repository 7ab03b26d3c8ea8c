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
  TextStore& store;  // owns texts made for them
};

// Immutable; any number of threads may use it at once. Each must agree with the pre-tokenizer of
// its name of HF tokenizers.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Replaces each of pieces.views by its parts; none is empty.
  virtual void split(Pieces& pieces) const = 0;
};

// Where the matches go when a text is cut at them. "a--b" at every "-":
enum class SplitBehavior {
  removed,               // a b
  isolated,              // a - - b
  merged_with_previous,  // a- - b
  merged_with_next,      // a - -b
  contiguous,            // a -- b
};

// A part of a text: a match, or the text between matches.
struct SplitPart {
  size_t begin = 0;
  size_t end = 0;
  bool is_match = false;
};

// Appends the pieces made of the parts of `text`, which are in order and without gaps.
void append_pieces(std::string_view text, const std::vector<SplitPart>& parts,
                   SplitBehavior behavior, std::vector<std::string_view>& pieces);

// `Split` with behavior Isolated: each match, and each text between matches, is a piece.
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

// Applies pre-tokenizers in order; without any the text stays in one piece.
class PreTokenizerSequence final : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<std::unique_ptr<PreTokenizer>> steps);
  void split(Pieces& pieces) const override;

 private:
  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

}  // namespace paceline
