// DecodeSlots is the state of decoding sequences in a backend's memory, which steps them without
// the CPU: the token that a step draws is the input of the next one.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/sample.h"
#include "kernels/operands.h"
#include "kernels/row_sampler.h"

namespace paceline {

// What a step drew for a slot.
struct DecodedToken {
  enum class Status : int32_t {
    ok,
    nan_logits,  // these three are SampleStatus'
    nothing_to_draw,
    all_forbidden,
    bad_state,  // the row's state holds a NaN or an infinity
    empty,      // the slot had no sequence
  };
  Status status = Status::empty;
  int32_t id = -1;
  float logprob = 0.0f;  // as in a Sample
  std::vector<TokenLogprob> top_logprobs = {};
};

// A sequence. Its tokens are drawn as `draw` says, from the position behind its own on, with a
// history that counts them.
struct DecodeSlot {
  int32_t token = 0;      // the last one, whose row is still to be computed
  int32_t position = 0;   // of that token
  int64_t num_steps = 0;  // then the slot is empty; the sequence's blocks reach that far
  std::span<const int32_t> stop_ids = {};       // drawing one of them empties the slot
  std::span<const int32_t> forbidden_ids = {};  // that the first num_forbidding steps don't draw
  int64_t num_forbidding = 0;
  RowDraw draw = {};  // without a forced token; its position doesn't count
};

// A group of the cache.
struct DecodeGroup {
  int64_t window = 0;
  bool has_states = false;  // instead of keys and values
};

// What decode slots are made for.
struct DecodeShape {
  int64_t num_slots = 0;
  std::vector<DecodeGroup> groups;
  int64_t block_size = 16;
  int64_t num_products = 0;  // that the slots' adapters may change
};

// Where the slots have their keys and values in a group: slices with their block tables. Or their
// states: slices with their blocks, and the saves of all steps that they take.
struct SlotMemory {
  std::span<const AttentionSlice> slices = {};
  StateSlices states = {};
};

// A step of the first slots, a row each: the slots' state on the device.
struct DecodeStep {
  BatchArrays arrays;
  RowFlags finite;            // of finite_rows, read by the slots' next step
  bool has_adapters = false;  // then add_lora() belongs to it
};

// Computes a step with the backend's operations: the arrays in, draw() of every row out. Nothing
// may be read from the backend, and mix_experts has up to kMostMixedRows.
using ComputeStep = std::function<void(const DecodeStep& step)>;

constexpr int64_t kMostMixedRows = 16;

// Belongs to the backend that made it, which must outlive it, and is used like it: by one thread at
// a time, whose calls take effect in their order.
class DecodeSlots {
 public:
  virtual ~DecodeSlots() = default;

  // Replaces all slots; those behind the last are empty. `groups` are those of the cache. Where
  // there are adapters, `lora` has the segments of each product, as add_lora takes them, with slots
  // as rows; their matrices must outlive the steps. Drops steps that were not read.
  virtual void load(std::span<const DecodeSlot> slots, std::span<const SlotMemory> groups,
                    std::span<const std::vector<LoraSegment>> lora, const ComputeStep& compute) = 0;
  // Part of a ComputeStep that has adapters: add_lora with the segments of the product.
  //                                       x [rows, k], out [rows, n]
  virtual void add_lora(int64_t product, const Tensor& x, const Tensor& out) = 0;
  // Part of a ComputeStep: draws the tokens of slots first_slot and following, one for each row.
  //                                       logits [rows, vocab]
  virtual void draw(int64_t first_slot, const Tensor& logits) = 0;
  // Starts a step of the loaded slots and returns; at most kMostInFlight steps may be unread.
  virtual void start_step() = 0;
  // Waits for the first step that was not read: a token for each loaded slot, valid until the next
  // call.
  virtual std::span<const DecodedToken> read_step() = 0;

  static constexpr int64_t kMostInFlight = 2;
};

}  // namespace paceline
