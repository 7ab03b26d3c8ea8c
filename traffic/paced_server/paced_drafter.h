// PacedDrafter proposes what the paced model's rule says, wrong at every `error_period`-th
// position.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "spec/drafter.h"
#include "traffic/token_script.h"

namespace paceline::traffic {

class PacedDrafter : public Drafter {
 public:
  explicit PacedDrafter(int64_t error_period) : error_period_(std::max<int64_t>(error_period, 1)) {}

  std::string_view name() const override { return "paced"; }
  std::unique_ptr<DraftState> begin(std::span<const int32_t> /*prompt*/,
                                    std::span<const int32_t> /*prediction*/) override {
    return std::make_unique<DraftState>();
  }
  int64_t prospects(DraftState& /*state*/, std::span<const int32_t> /*tokens*/,
                    int64_t most) override {
    return most;
  }
  void propose(std::span<const DraftRequest> requests) override {
    for (const DraftRequest& request : requests) {
      int32_t last = request.tokens.back();
      auto position = static_cast<int32_t>(request.tokens.size());
      for (int64_t i = 0; i < request.most; ++i, ++position) {
        last = next_token(last, position - 1);
        if (position % error_period_ == 0) last = next_token(last, position);
        request.draft->tokens.push_back(last);
      }
    }
  }

 private:
  int64_t error_period_;
};

}  // namespace paceline::traffic
