#include "spec/replay_drafter.h"

#include <algorithm>

#include "base/random.h"

namespace paceline {
namespace {

struct ReplayState : DraftState {
  std::span<const int32_t> answer;
  size_t prompt_size = 0;

  std::span<const int32_t> rest(std::span<const int32_t> tokens, int64_t most) const {
    const std::span<const int32_t> all =
        answer.subspan(std::min(answer.size(), tokens.size() - prompt_size));
    return all.first(std::min(all.size(), static_cast<size_t>(most)));
  }
};

}  // namespace

void RecordedAnswers::add(std::span<const int32_t> prompt, std::span<const int32_t> answer) {
  std::vector<int32_t>& text = texts_.emplace_back(prompt.begin(), prompt.end());
  text.insert(text.end(), answer.begin(), answer.end());
}

std::span<const int32_t> RecordedAnswers::after(std::span<const int32_t> text) const {
  for (const std::vector<int32_t>& recorded : texts_) {
    if (recorded.size() < text.size()) continue;
    if (std::equal(text.begin(), text.end(), recorded.begin()))
      return std::span(recorded).subspan(text.size());
  }
  return {};
}

std::unique_ptr<DraftState> ReplayDrafter::begin(std::span<const int32_t> prompt,
                                                 std::span<const int32_t> /*prediction*/) {
  auto state = std::make_unique<ReplayState>();
  state->answer = options_.answer(prompt);
  state->prompt_size = prompt.size();
  return state;
}

int64_t ReplayDrafter::prospects(DraftState& state, std::span<const int32_t> tokens, int64_t most) {
  return static_cast<int64_t>(static_cast<ReplayState&>(state).rest(tokens, most).size());
}

void ReplayDrafter::propose(std::span<const DraftRequest> requests) {
  for (const DraftRequest& request : requests) {
    auto position = static_cast<int64_t>(request.tokens.size());
    const auto* state = static_cast<const ReplayState*>(request.state);
    for (const int32_t token : state->rest(request.tokens, request.most))
      request.draft->tokens.push_back(drafted(token, position++));
  }
}

int32_t ReplayDrafter::drafted(int32_t token, int64_t position) const {
  const uint64_t counter = (static_cast<uint64_t>(position) << 32) | static_cast<uint32_t>(token);
  if (uniform_draw(options_.seed, counter) >= options_.wrong_probability) return token;
  return static_cast<int32_t>((int64_t{token} + 1) % options_.vocab_size);
}

}  // namespace paceline
