// The steps of decoders, on one token at a time or on the joined text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/text_pattern.h"

namespace paceline {

// The position of a token in a list.
struct TokenPlace {
  bool first = false;
  bool last = false;
};

// Immutable. Each must agree with the decoder of HF tokenizers that it is named after.
class TokenStep {
 public:
  virtual ~TokenStep() = default;
  virtual void apply(std::string& token, TokenPlace place) const = 0;
  // Whether the result depends on the token's position.
  virtual bool looks_at_first() const { return false; }
  virtual bool looks_at_last() const { return false; }
};

// `Replace`.
std::unique_ptr<TokenStep> make_replace_step(std::unique_ptr<TextPattern> pattern,
                                             std::string_view content);

// `Strip`: removes one character at each end, up to a number of times.
struct StripCounts {
  size_t start = 0;
  size_t stop = 0;
};
std::unique_ptr<TokenStep> make_strip_step(std::string_view character, StripCounts counts);

// `Metaspace`: the mark becomes a space; in the first token it is removed if one was put before the
// text.
enum class FirstMark { removed, kept };
std::unique_ptr<TokenStep> make_metaspace_step(std::string_view mark, FirstMark first);

// `WordPiece`: tokens without the prefix are words of their own.
enum class Cleanup { yes, no };
std::unique_ptr<TokenStep> make_word_piece_step(std::string_view prefix, Cleanup cleanup);

// `BPEDecoder`: the suffix becomes a space; in the last token it is removed.
std::unique_ptr<TokenStep> make_suffix_step(std::string_view suffix);

// `ByteLevel`: from the byte-level alphabet to bytes.
std::unique_ptr<TokenStep> make_byte_level_step();

// Without a decoder: a space between tokens.
std::unique_ptr<TokenStep> make_space_step();

// The stream of one text through a text step.
class TextStepStream {
 public:
  virtual ~TextStepStream() = default;
  // Appends the part of the changed text that is final.
  virtual void push(std::string_view text, std::string& out) = 0;
  // Appends the rest of it.
  virtual void finish(std::string& out) = 0;
};

// Immutable.
class TextStep {
 public:
  virtual ~TextStep() = default;
  virtual std::unique_ptr<TextStepStream> begin_text() const = 0;
};

// `Replace` of a string; holds back a possible beginning of one.
std::unique_ptr<TextStep> make_replace_text(std::string_view string, std::string_view content);
// `Replace` of any pattern; holds back everything.
std::unique_ptr<TextStep> make_replace_text(std::unique_ptr<TextPattern> pattern,
                                            std::string_view content);
// `Strip`; holds back a possible end.
std::unique_ptr<TextStep> make_strip_text(std::string_view character, StripCounts counts);

}  // namespace paceline
