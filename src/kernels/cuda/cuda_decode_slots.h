// CudaDecodeSlots is DecodeSlots on a CudaDevice: a step is a graph, captured once for a number of
// slots, and its tokens come back through pinned memory.
#pragma once

#include <array>
#include <compare>
#include <map>
#include <memory>
#include <vector>

#include "kernels/cuda/code/decode_step.h"
#include "kernels/cuda/cuda_lora.h"
#include "kernels/cuda/cuda_row_sampler.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/scratch_buffer.h"
#include "kernels/decode_slots.h"

namespace paceline::cuda {

class CudaDecodeSlots final : public DecodeSlots {
 public:
  // Everything referred to must outlive it. At most kMostSlotGroups groups.
  CudaDecodeSlots(CudaDevice& device, ScratchMemory& memory, const DecodeShape& shape);
  ~CudaDecodeSlots() override;
  CudaDecodeSlots(const CudaDecodeSlots&) = delete;
  CudaDecodeSlots& operator=(const CudaDecodeSlots&) = delete;

  void load(std::span<const DecodeSlot> slots, std::span<const SlotMemory> groups,
            std::span<const std::vector<LoraSegment>> lora, const ComputeStep& compute) override;
  void add_lora(int64_t product, const Tensor& x, const Tensor& out) override;
  void draw(int64_t first_slot, const Tensor& logits) override;
  void start_step() override;
  std::span<const DecodedToken> read_step() override;

 private:
  struct GraphKey {
    int64_t rows;
    int64_t chunks;  // of the longest row
    bool adjusts;    // a slot draws from other logits than the model's
    bool scores;     // one wants log-probabilities
    int64_t ranks;   // of adapters in a row, at most; 0: there are none
    auto operator<=>(const GraphKey&) const = default;
  };
  struct Graph {
    std::unique_ptr<CudaGraph> graph;
    int64_t num_moves = -1;  // of scratch, when it was captured
  };
  // Where the arrays stand in the device's block of state, in bytes.
  struct Layout {
    struct Group {
      size_t kv_slots, rows, states;
    };
    size_t step, draws, stops, steps_left, tokens, positions, output_rows, drawn, finite, lora;
    std::vector<Group> groups;
    size_t numbers;  // block tables, stop ids and the draws' lists, to the end
  };
  struct Arrays;

  Layout lay_out() const;
  Arrays view(std::byte* state) const;
  std::vector<std::byte> image(std::span<const DecodeSlot> slots,
                               std::span<const SlotMemory> groups,
                               std::span<const LoraTables> lora) const;
  void relocate(std::vector<std::byte>& state) const;
  void upload(std::vector<std::byte> state);
  size_t ring_bytes() const;
  size_t score_ring_bytes() const;
  void capture(const GraphKey& key, const ComputeStep& compute);
  void compute_step(const ComputeStep& compute);
  void advance(int64_t rows);

  CudaDevice& device_;
  ScratchMemory& scratch_;
  DecodeShape shape_;
  Layout layout_;
  ScratchBuffer state_;
  ScratchBuffer scores_;    // [slots, kMostScores]
  ScratchBuffer sums_;      // [slots]
  ScratchBuffer adjusted_;  // [rows of a draw, vocab]
  ScratchBuffer lora_inner_;
  std::vector<LoraTables> lora_tables_;  // of the products; reused
  size_t state_bytes_ = 0;               // reserved
  std::byte* state_address_ = nullptr;
  TokenScore* scores_address_ = nullptr;
  SlotToken* ring_;         // pinned [kRingSteps, slots]
  TokenScore* score_ring_;  // pinned [kRingSteps, slots, kMostScores]
  std::array<std::unique_ptr<CudaEvent>, kMostInFlight> events_;
  std::map<GraphKey, Graph> graphs_;
  GraphKey captured_{};  // the step that is being captured
  GraphKey loaded_{};    // the one that start_step starts
  int64_t num_loaded_ = 0;
  int64_t num_started_ = 0, num_read_ = 0;  // steps since they were loaded
  std::vector<DecodedToken> tokens_;
};

}  // namespace paceline::cuda
