// TokenMask limits the next token to the allowed ones, and to those that complete no banned
// sequence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace paceline {

// Immutable, shared by the choices of a request.
class TokenMask {
 public:
  // `allowed` in any order, none: all tokens are; its ids are below the vocabulary's size. None of
  // the `banned` sequences is empty.
  TokenMask(std::vector<int32_t> allowed, std::vector<std::vector<int32_t>> banned);

  // Every other logit becomes -inf. `output` is what was drawn so far, the last one last; a
  // sequence that began in the prompt isn't seen, as in vLLM's bad_words.
  void apply(std::span<float> logits, std::span<const int32_t> output) const;

  bool reads_output() const { return !banned_.empty(); }
  const std::vector<int32_t>& allowed() const { return allowed_; }
  const std::vector<std::vector<int32_t>>& banned() const { return banned_; }

 private:
  std::vector<int32_t> allowed_;  // ascending, no id twice
  std::vector<std::vector<int32_t>> banned_;
};

}  // namespace paceline
