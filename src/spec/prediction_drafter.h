// PredictionDrafter proposes the next tokens of a text that the output will mostly repeat: the
// `prediction` of OpenAI's chat completions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "spec/drafter.h"

namespace paceline {

// Proposes nothing to sequences without a prediction.
class PredictionDrafter : public Drafter {
 public:
  std::string_view name() const override { return "prediction"; }
  std::unique_ptr<DraftState> begin(std::span<const int32_t> prompt,
                                    std::span<const int32_t> prediction) override;
  int64_t prospects(DraftState& state, std::span<const int32_t> tokens, int64_t most) override;
  void propose(std::span<const DraftRequest> requests) override;
};

}  // namespace paceline
