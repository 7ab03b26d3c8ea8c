// TokenHistory counts the tokens of a sequence's prompt and output, and keeps the output in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/token_count.h"

namespace paceline {

class TokenHistory {
 public:
  void add_prompt(std::span<const int32_t> ids);
  void add_output(int32_t id);
  // Undoes the last add_output, exactly; no prompt was added since.
  void remove_last_output();

  // Every token once, in the order of first appearance.
  std::span<const TokenCount> tokens() const { return tokens_; }
  std::span<const int32_t> output() const { return output_; }

 private:
  struct Place {
    size_t index = 0;  // in tokens_
    bool in_prompt = false;
  };
  Place& place(int32_t id);

  std::vector<TokenCount> tokens_;  // dense, since every draw with penalties reads all of it
  std::unordered_map<int32_t, Place> places_;
  std::vector<int32_t> output_;
};

}  // namespace paceline
