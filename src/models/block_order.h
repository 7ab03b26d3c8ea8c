// walk_block is the order of a decoder block's operations, whoever computes them: serving in place,
// training on arrays with derivatives.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "layers/feed_forward.h"
#include "layers/laurel.h"
#include "layers/layer_inputs.h"
#include "layers/mixer.h"
#include "layers/norm.h"

namespace paceline {

// What a branch reads.
enum class BranchInput : uint8_t {
  residual,  // the residual stream as it is
  normed,    // a norm of it
  beside,    // a norm of it as the branch before it found it
  shared,    // what the branch before it reads, which may be the last one of another block
};

// residual += scale * after(part(input)), or residual = after(residual + scale * part(input)); then
// residual *= sum_scale. Its parts are those of a block, which outlives it.
struct BlockBranch {
  const Mixer* mixer = nullptr;               // its part: this one,
  const FeedForward* feed_forward = nullptr;  // this one,
  const Laurel* laurel = nullptr;             // this one, or
  const LayerInputGate* layer_input = nullptr;
  BranchInput input = BranchInput::residual;
  const Norm* before = nullptr;  // of BranchInput::normed and beside, else null
  const Norm* after = nullptr;   // null: none
  float scale = 1.0f;
  float sum_scale = 1.0f;
  bool norms_sum = false;  // the second of the two
};

// Those of one block in their order.
class BlockBranches {
 public:
  void push_back(const BlockBranch& branch) { all_[count_++] = branch; }
  std::span<const BlockBranch> all() const { return {all_.data(), count_}; }
  const BlockBranch& front() const { return all_.front(); }
  BlockBranch& back() { return all_[count_ - 1]; }

 private:
  std::array<BlockBranch, 4> all_;
  size_t count_ = 0;
};

// Who computes a block: it holds the residual stream, and of `next`, the branch that follows, it
// may use what that reads. Null: nothing of what is left is read.
template <class Steps>
concept BlockSteps = requires(Steps& steps, const BlockBranch& branch,
                              const typename Steps::Value& value, const BlockBranch* next) {
  { steps.read(branch) } -> std::convertible_to<typename Steps::Value>;
  { steps.run(branch, value, next) } -> std::convertible_to<typename Steps::Value>;
  steps.add(branch, value, next);
};

// `following` is the first branch of the next block.
template <BlockSteps Steps>
void walk_block(std::span<const BlockBranch> branches, const BlockBranch* following, Steps& steps) {
  for (size_t i = 0; i < branches.size(); ++i) {
    const BlockBranch* const next = i + 1 < branches.size() ? &branches[i + 1] : following;
    const typename Steps::Value input = steps.read(branches[i]);
    steps.add(branches[i], steps.run(branches[i], input, next), next);
  }
}

}  // namespace paceline
