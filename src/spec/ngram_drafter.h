// NgramDrafter proposes what followed the last tokens where they occurred before in prompt and
// output.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "spec/drafter.h"

namespace paceline {

// How many of the last tokens must have occurred before. The longest match is taken, and of equally
// long ones the last.
struct PromptLookupOptions {
  int64_t min_length = 2;  // --prompt-lookup-min
  int64_t max_length = 5;  // --prompt-lookup-max
};

// Prompt lookup decoding (Saxena, 2023); LLMA (Yang et al., "Inference with Reference", 2023). A
// proposal that reaches the end of the text goes on with its own tokens, so text of period 3 gets
// proposals of any length.
class NgramDrafter : public Drafter {
 public:
  // Throws Error invalid for lengths outside [1, TokenIndex::kMaxLength] or min above max.
  explicit NgramDrafter(const PromptLookupOptions& options);

  std::string_view name() const override { return "prompt_lookup"; }
  std::unique_ptr<DraftState> begin(std::span<const int32_t> prompt,
                                    std::span<const int32_t> prediction) override;
  int64_t prospects(DraftState& state, std::span<const int32_t> tokens, int64_t most) override;
  void propose(std::span<const DraftRequest> requests) override;

 private:
  PromptLookupOptions options_;
};

}  // namespace paceline
