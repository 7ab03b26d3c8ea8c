// The paced server's model: the next token for a token and its position.
#pragma once

#include <cstdint>

namespace paceline::traffic {

// Ordinary words of the bundled tokenizer, plain ASCII; the server checks it when it starts.
constexpr int32_t kFirstToken = 2300;
constexpr int32_t kNumTokens = 1009;  // a prime

// The token at position + 1. It differs from the previous one and depends on the position, so that
// later tokens reveal a lost, doubled or misplaced one.
constexpr int32_t next_token(int32_t token, int64_t position) {
  const int64_t from = (token % kNumTokens + kNumTokens - kFirstToken % kNumTokens) % kNumTokens;
  const int64_t stride = 1 + position * 31 % (kNumTokens - 1);
  return kFirstToken + static_cast<int32_t>((from + stride) % kNumTokens);
}

}  // namespace paceline::traffic
