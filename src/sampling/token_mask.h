// TokenMask restricts the next token to allowed ones that complete no banned sequence.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace paceline {

// Immutable, shared by the choices of a request.
class TokenMask {
 public:
  // `allowed` has ids of the vocabulary in any order; empty: all are allowed. No `banned` sequence
  // is empty.
  TokenMask(std::vector<int32_t> allowed, std::vector<std::vector<int32_t>> banned);

  // Sets all other logits to -inf. `output` has the tokens drawn so far; a sequence that began in
  // the prompt isn't banned, as in vLLM's bad_words.
  void apply(std::span<float> logits, std::span<const int32_t> output) const;

  // Calls body(id) for each token that would complete a banned sequence, maybe more than once.
  template <class Body>
  void for_each_banned(std::span<const int32_t> output, Body&& body) const {
    for (const std::vector<int32_t>& sequence : banned_) {
      const std::span<const int32_t> begin(sequence.data(), sequence.size() - 1);
      if (begin.size() > output.size()) continue;
      const auto tail = output.last(begin.size());
      if (std::equal(begin.begin(), begin.end(), tail.begin())) body(sequence.back());
    }
  }

  // Whether what it bans depends on the output so far.
  bool reads_output() const { return reads_output_; }
  const std::vector<int32_t>& allowed() const { return allowed_; }
  const std::vector<std::vector<int32_t>>& banned() const { return banned_; }

 private:
  std::vector<int32_t> allowed_;  // ascending, no id twice
  std::vector<std::vector<int32_t>> banned_;
  bool reads_output_ = false;
};

}  // namespace paceline
