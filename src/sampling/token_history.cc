#include "sampling/token_history.h"

namespace paceline {

TokenCount& TokenHistory::entry(int32_t id) {
  const auto [position, is_new] = index_.try_emplace(id, tokens_.size());
  if (is_new) tokens_.push_back({.id = id});
  return tokens_[position->second];
}

void TokenHistory::add_prompt(std::span<const int32_t> ids) {
  for (int32_t id : ids) entry(id);
}

void TokenHistory::add_output(int32_t id) {
  ++entry(id).in_output;
  output_.push_back(id);
}

}  // namespace paceline
