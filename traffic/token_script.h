// The rule by which the paced server's model speaks: what follows a token at a position.
#pragma once

#include <cstdint>

namespace paceline::traffic {

// Ordinary words of the bundled tokenizer, plain ASCII; the server checks it when it starts.
constexpr int32_t kFirstToken = 2300;
constexpr int32_t kNumTokens = 1009;  // a prime

// The token at position + 1. It never equals the one before it, and each step depends on where it
// is taken: a token that is lost, doubled or out of place shows in those behind it.
constexpr int32_t next_token(int32_t token, int64_t position) {
  const int64_t from = (token % kNumTokens + kNumTokens - kFirstToken % kNumTokens) % kNumTokens;
  const int64_t stride = 1 + position * 31 % (kNumTokens - 1);
  return kFirstToken + static_cast<int32_t>((from + stride) % kNumTokens);
}

}  // namespace paceline::traffic
