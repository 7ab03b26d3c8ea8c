// Measures a model's perplexity of a text, in windows of its context length.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "cli/session.h"
#include "paceline/llm.h"
#include "paceline/tokenizer.h"

namespace paceline {

struct Perplexity {
  int64_t tokens = 0;  // measured
  double nats = 0;
  size_t bytes = 0;         // of their text
  int64_t text_tokens = 0;  // more than `tokens` after an interruption

  double value() const;
  double bits_per_byte() const;
  bool is_partial() const { return tokens < text_tokens; }
};

struct MeasuredText {
  std::vector<TokenId> tokens;
  size_t bytes = 0;
  TokenId separator = 0;  // before every window: BOS, else <|endoftext|>, else an EOS
};

// Reads only the first `max_positions` tokens, if given; `path` "-" is standard input. Throws Error
// invalid for an empty text, unsupported when the tokenizer has no separator.
MeasuredText read_measured_text(const std::string& path, std::optional<int64_t> max_positions,
                                const Tokenizer& tokenizer);

// The sum of the log-probabilities of all tokens but the first, each given those before it.
using WindowScorer = std::function<double(const std::vector<TokenId>& window)>;

// Uses windows of `context` tokens without overlap, each beginning with the separator. After an
// interruption it measures the finished windows; throws Error cancelled when there are none.
// `tokenizer` is the one that encoded the text.
Perplexity measure_perplexity(const MeasuredText& text, const Tokenizer& tokenizer, int64_t context,
                              const WindowScorer& score, const Session& session);

WindowScorer scorer_of(LLM& llm, const Session& session);

// "1,234 tokens, perplexity 12.3456, 0.9876 bits per byte", and as members of a JSON object.
std::string perplexity_text(const Perplexity& measured);
void write_perplexity(const Perplexity& measured, JsonWriter& json);

}  // namespace paceline
