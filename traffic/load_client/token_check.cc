#include "traffic/load_client/token_check.h"

#include <fmt/format.h>

#include "traffic/token_script.h"

namespace paceline::traffic {

TokenCheck::TokenCheck(const std::vector<int32_t>& prompt)
    : last_(prompt.back()), position_(static_cast<int64_t>(prompt.size()) - 1) {}

void TokenCheck::take(int32_t token) {
  const int32_t expected = next_token(last_, position_);
  if (token != expected && fault_.empty()) fault_ = describe(token);
  before_ = last_;
  last_ = expected;
  ++position_;
  ++count_;
}

std::string TokenCheck::describe(int32_t token) const {
  constexpr int kNear = 16;
  const int32_t expected = next_token(last_, position_);
  if (token == last_ || token == before_) return fmt::format("token {} is doubled", count_ - 1);
  int32_t ahead = expected;
  for (int i = 1; i <= kNear; ++i) {
    ahead = next_token(ahead, position_ + i);
    if (ahead == token) {
      return fmt::format("{} tokens are lost, or out of order, at token {}", i, count_);
    }
  }
  return fmt::format("token {} is {}, expected {}", count_, token, expected);
}

}  // namespace paceline::traffic
