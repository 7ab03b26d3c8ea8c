#include "spec/prediction_drafter.h"

#include <algorithm>

#include "spec/prediction_cursor.h"

namespace paceline {
namespace {

struct PredictionState : DraftState {
  PredictionState(std::span<const int32_t> prediction, std::span<const int32_t> prompt)
      : cursor(prediction, prompt) {}

  PredictionCursor cursor;
};

std::span<const int32_t> rest_of_prediction(DraftState& state, std::span<const int32_t> tokens,
                                            int64_t most) {
  PredictionCursor& cursor = static_cast<PredictionState&>(state).cursor;
  cursor.advance(tokens);
  const std::span<const int32_t> rest = cursor.rest();
  return rest.first(std::min(rest.size(), static_cast<size_t>(most)));
}

}  // namespace

std::unique_ptr<DraftState> PredictionDrafter::begin(std::span<const int32_t> prompt,
                                                     std::span<const int32_t> prediction) {
  return std::make_unique<PredictionState>(prediction, prompt);
}

int64_t PredictionDrafter::prospects(DraftState& state, std::span<const int32_t> tokens,
                                     int64_t most) {
  return static_cast<int64_t>(rest_of_prediction(state, tokens, most).size());
}

void PredictionDrafter::propose(std::span<const DraftRequest> requests) {
  for (const DraftRequest& request : requests) {
    const auto rest = rest_of_prediction(*request.state, request.tokens, request.most);
    request.draft->tokens.assign(rest.begin(), rest.end());
  }
}

}  // namespace paceline
