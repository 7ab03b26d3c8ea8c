// ModelDecodeLoop runs a decoder's steps on a backend that has decode slots.
#pragma once

#include <memory>
#include <vector>

#include "layers/kv_storage.h"
#include "layers/scratch.h"
#include "models/decoder.h"
#include "runner/decode_loop.h"

namespace paceline {

// Copies the batch's blocks in all layers.
void copy_blocks(Backend& backend, const Decoder& decoder, const KvStorage& kv, const Batch& batch);

class ModelDecodeLoop final : public DecodeLoop {
 public:
  // What it shares with its runner; everything must outlive it.
  struct Parts {
    const Decoder& decoder;
    Backend& backend;
    const KvStorage& kv;
    Scratch& scratch;
    Tensor hidden;  // [rows, hidden]
    Tensor logits;  // [rows, vocab]
  };

  // nullptr where the backend has no decode slots, or a step of the decoder needs the CPU.
  static std::unique_ptr<ModelDecodeLoop> make(const Parts& parts, int64_t max_sequences);

  int64_t max_sequences() const override { return max_sequences_; }
  // Slots know the adapters of dense products alone.
  bool takes_adapters() const override { return !parts_.decoder.config().mixture; }
  void start(const Batch& batch, AdapterTable adapters,
             std::span<const DecodeTerms> terms) override;
  std::span<const DecodedToken> next(Then then) override;

 private:
  ModelDecodeLoop(const Parts& parts, int64_t max_sequences);

  void compute(const DecodeStep& step);
  // The segments of all products; none without adapters.
  std::span<const std::vector<LoraSegment>> list_segments(const AdaptedRows& rows);

  Parts parts_;
  int64_t max_sequences_;
  size_t num_groups_;
  std::unique_ptr<DecodeSlots> slots_;
  std::vector<DecodeSlot> loaded_;
  std::vector<SlotMemory> memory_;                  // of the groups
  std::vector<std::vector<LoraSegment>> segments_;  // of the products
};

}  // namespace paceline
