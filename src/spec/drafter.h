// Drafter proposes the next tokens of sequences; the model computes their rows in one forward and
// draws its own tokens, so a proposal changes how fast an output comes, never the output.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "sampling/distribution.h"
#include "sampling/sampling_options.h"
#include "sampling/token_history.h"

namespace paceline {

// What a drafter keeps of one sequence. The drafter outlives it.
class DraftState {
 public:
  virtual ~DraftState() = default;
};

// A proposal: tokens that may follow each other, and where they were drawn from.
struct Draft {
  std::vector<int32_t> tokens;
  // By token, where the drafter was asked for it: the distribution that the token was drawn from.
  // Empty: each token was certain.
  std::vector<Distribution> distributions;
  // The drafter can't go on with this sequence: its logits hold a NaN.
  bool failed = false;

  void clear() {
    tokens.clear();
    distributions.clear();
    failed = false;
  }
};

// What may follow a sequence whose text is under a constraint, along a draft.
class DraftMask {
 public:
  virtual ~DraftMask() = default;
  // A bit for each token that may come next (LogitsRow::allowed); empty: the draft ends here. Valid
  // until the next call.
  virtual std::span<const uint64_t> allowed() = 0;
  // Goes on behind a token that may come.
  virtual void accept(int32_t token) = 0;
};

struct DraftRequest {
  DraftState* state = nullptr;
  // Prompt and output. The row of the last one isn't computed yet.
  std::span<const int32_t> tokens;
  int64_t most_tokens = 0;  // of the sequence, prompt and output: the same in every request for it
  // How the model will draw. A drafter that draws uses the same options, seed and positions.
  const SamplingOptions* sampling = nullptr;
  TokenHistory* history = nullptr;  // of `tokens`; the drafter leaves it as it was
  int64_t most = 0;                 // tokens to propose at most
  bool wants_distributions = false;
  DraftMask* mask = nullptr;  // null: any token may come. What it forbids is cut off the draft
  Draft* draft = nullptr;     // empty; the drafter fills it
};

// One thread at a time. Any call but prospects() may throw; the engine then decodes without drafts.
class Drafter {
 public:
  virtual ~Drafter() = default;

  virtual std::string_view name() const = 0;

  // Whether a sequence's first draft takes long because the drafter computes all tokens so far.
  virtual bool computes_prompts() const { return false; }

  // The state of a sequence that begins, or begins again after a preemption. `prediction`: a text
  // that the output will mostly repeat, or nothing.
  virtual std::unique_ptr<DraftState> begin(std::span<const int32_t> prompt,
                                            std::span<const int32_t> prediction) = 0;

  // How many tokens it could propose now, at most `most`; `tokens` has those of the last call and
  // what has been drawn since. Cheap: it computes no forward.
  virtual int64_t prospects(DraftState& state, std::span<const int32_t> tokens, int64_t most) = 0;

  // Fills each request's draft with at most `most` tokens.
  virtual void propose(std::span<const DraftRequest> requests) = 0;
};

}  // namespace paceline
