#include "sampling/token_history.h"

#include "base/error.h"

namespace paceline {

TokenHistory::Place& TokenHistory::place(int32_t id) {
  const auto [found, is_new] = places_.try_emplace(id, Place{.index = tokens_.size()});
  if (is_new) tokens_.push_back({.id = id});
  return found->second;
}

void TokenHistory::add_prompt(std::span<const int32_t> ids) {
  for (int32_t id : ids) place(id).in_prompt = true;
}

void TokenHistory::add_output(int32_t id) {
  ++tokens_[place(id).index].in_output;
  output_.push_back(id);
}

void TokenHistory::remove_last_output() {
  PL_CHECK(!output_.empty(), "there is no output to remove");
  const auto found = places_.find(output_.back());
  output_.pop_back();
  TokenCount& count = tokens_[found->second.index];
  if (--count.in_output > 0 || found->second.in_prompt) return;
  PL_CHECK(&count == &tokens_.back(), "a prompt was added after the output");
  tokens_.pop_back();
  places_.erase(found);
}

}  // namespace paceline
