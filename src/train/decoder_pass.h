// DecoderPass computes the loss of a batch and the gradients of what is trained, with the bits of
// Decoder (a test compares them for every family): both walk a block by models/block_order.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "models/decoder.h"
#include "train/decoder_training.h"
#include "train/train_batch.h"

namespace paceline {

// Freed bytes that a Memory keeps for training (Memory::set_cache_limit). The arrays of a pass come
// again in the same sizes, and fresh pages cost more than many operations on them.
constexpr size_t kTrainingCacheBytes = size_t{1} << 30;

// Activations of about so many bytes are kept by default.
constexpr int64_t kKeptActivationBytes = int64_t{256} << 20;
constexpr int64_t kAllActivations = std::numeric_limits<int64_t>::max();

struct PassOptions {
  DType kv_dtype = DType::bf16;  // as keys and values are stored when serving
  // The last block keeps its activations, and so do the dense blocks before it whose activations
  // take up to about this many bytes together. Other blocks keep their input and are computed
  // again.
  int64_t kept_bytes = kKeptActivationBytes;
};

class DecoderPass {
 public:
  // All must outlive it.
  DecoderPass(Backend& backend, ThreadPool& threads, const Decoder& decoder,
              const DecoderTraining& training, const PassOptions& options);
  ~DecoderPass();

  // Adds the gradients of the batch's weighted sum of losses to those of what is trained, and
  // the loss of each row with a weight to `losses`. Dropped elements depend on `dropout` alone.
  void run(const TrainBatch& batch, const Dropout& dropout, std::vector<float>& losses);
  // The losses alone, without dropout.
  void evaluate(const TrainBatch& batch, std::vector<float>& losses);
  // The states behind the last block, before the final norm.  [rows, hidden]
  autodiff::Array states(const TrainBatch& batch);
  // How many blocks, the first ones, are computed again in a batch of `rows` rows.
  size_t num_checkpoints(int64_t rows) const;

 private:
  struct Prepared;
  class BlockPass;

  std::unique_ptr<Prepared> prepare(const TrainBatch& batch) const;
  autodiff::Array embed(const TrainBatch& batch) const;
  autodiff::Array feed_forward(const Prepared& prepared, const FeedForward& layer,
                               const BlockTraining& trained, const autodiff::Array& x,
                               Elements elements) const;
  autodiff::Array mixer(const Prepared& prepared, size_t index, const Mixer& mixer,
                        const autodiff::Array& x, Elements elements) const;
  autodiff::Array mix(const Prepared& prepared, size_t index, const Mixer& mixer,
                      const autodiff::Array& x) const;
  // From what a block reads to what the next one reads, as BlockPass has it.
  autodiff::Arrays block(const Prepared& prepared, size_t index, const autodiff::Arrays& state,
                         Elements elements) const;
  autodiff::Array all_blocks(const Prepared& prepared, const autodiff::Array& x) const;

  Backend& backend_;
  autodiff::Context context_;
  const Decoder& decoder_;
  const DecoderTraining& training_;
  PassOptions options_;
};

}  // namespace paceline
