// Decoder is a text model: it computes hidden states and logits from the token ids of a ragged
// batch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "layers/batch.h"
#include "layers/distance_scores.h"
#include "layers/feed_forward.h"
#include "layers/kv_storage.h"
#include "layers/mixer.h"
#include "layers/norm.h"
#include "layers/position_embedding.h"
#include "layers/rope.h"
#include "layers/scratch.h"
#include "models/block_order.h"
#include "models/decoder_config.h"

namespace paceline {

// One layer: a mixer and an MLP on the residual stream, or one of them, each with a norm before it,
// after it or both, and the layer's own input, if it has one.
class DecoderBlock {
 public:
  DecoderBlock(const LoadContext& context, const DecoderConfig& config, int64_t layer_index);

  // Updates `residual` [rows, hidden] in place. On entry `branch` [rows, hidden] holds what the
  // block's first branch reads, unless that is the residual stream. On return it holds what the
  // first one of `next` reads, or nothing of use if that is the residual stream or next is null.
  void forward(Backend& backend, const MixerInputs& in, Scratch& scratch, const Tensor& residual,
               const Tensor& branch, const DecoderBlock* next) const;

  // The same with several streams: on entry and on return `streams` are the residual streams, and
  // `others` have room for as many. `residual` and `branch` are scratch.
  void forward_streams(Backend& backend, const MixerInputs& in, Scratch& scratch,
                       const Tensor& residual, const Tensor& branch, Streams& streams,
                       Streams& others) const;

  // One to four. They live as long as the block stays where it is.
  BlockBranches branches() const;

  // Every matrix that a row is multiplied by.
  void list_weights(std::vector<const PackedMatrix*>& weights) const;

  // Its parts, null where it has none, for training to replace their values.
  Norm* before_mixer() { return before_mixer_ ? &*before_mixer_ : nullptr; }
  Mixer* mixer() { return mixer_ ? &*mixer_ : nullptr; }
  Norm* after_mixer() { return after_mixer_ ? &*after_mixer_ : nullptr; }
  Norm* before_mlp() { return before_mlp_ ? &*before_mlp_ : nullptr; }
  FeedForward* mlp() { return mlp_ ? &*mlp_ : nullptr; }
  Norm* after_mlp() { return after_mlp_ ? &*after_mlp_ : nullptr; }
  const Mixer* mixer() const { return mixer_ ? &*mixer_ : nullptr; }
  const FeedForward* mlp() const { return mlp_ ? &*mlp_ : nullptr; }

 private:
  BranchInput mixer_input_, mlp_input_;
  bool norms_sums_;
  float mixer_scale_, mlp_scale_;  // of what they add to the residual stream
  float end_scale_;                // of the residual stream behind the block
  std::optional<Norm> before_mixer_;
  std::optional<Mixer> mixer_;
  std::optional<Norm> after_mixer_;
  std::optional<Laurel> laurel_;
  std::optional<Norm> before_mlp_;
  std::optional<FeedForward> mlp_;
  std::optional<Norm> after_mlp_;
  std::optional<LayerInputGate> layer_input_;
  std::optional<Norm> after_layer_input_;
  std::optional<AltUp> altup_;
  size_t active_stream_ = 0;
};

// The results of a forward.
struct ForwardResult {
  // [rows or more, hidden]: first the normed states of the batch's output rows; the other rows are
  // scratch.
  Tensor out;
  RowFlags finite;  // [rows]: 0 for a row whose state holds a NaN or an infinity, or empty
};

class Decoder {
 public:
  // Reads every weight of the config, packs it and releases its mapped pages. Throws Error
  // not_found or corrupt naming the tensor, also for unused tensors of the files.
  Decoder(const LoadContext& context, DecoderConfig config);

  const DecoderConfig& config() const { return config_; }
  // All weights, including the head unless it is tied.
  int64_t num_parameters() const { return num_parameters_; }

  // Writes `result`, and stores the keys and values of the batch's rows.
  void forward(Backend& backend, const BatchView& batch, const KvStorage& kv, Scratch& scratch,
               const ForwardResult& result) const;

  // hidden [rows, hidden] -> out [rows, vocab]
  void logits(Backend& backend, const Tensor& hidden, const Tensor& out) const;
  // The same with only some of the vocabulary's columns: out [rows, columns.n]. `bias` are theirs
  // of head_bias(), or null.
  void column_logits(Backend& backend, const Tensor& hidden, const PackedMatrix& columns,
                     const Tensor* bias, const Tensor& out) const;
  // The cache group that a layer's keys and values belong to.
  int cache_group(int64_t layer) const { return block_groups_[static_cast<size_t>(layer)]; }
  const PackedMatrix& head() const { return head_ ? *head_ : embedding_; }
  const Tensor* head_bias() const { return head_bias_ ? &head_bias_->view : nullptr; }  // [vocab]

  // The other parts, for a pass that computes them in another way (training).
  const PackedMatrix& embedding() const { return embedding_; }
  const PositionEmbedding* positions() const { return positions_ ? &*positions_ : nullptr; }
  std::span<const DecoderBlock> blocks() const { return blocks_; }
  std::span<const Rope> ropes() const { return ropes_; }
  const Norm& final_norm() const { return final_norm_.value(); }  // of one that isn't an encoder
  bool has_own_head() const { return head_.has_value(); }         // else the embedding is the head

  // The same, for training to replace their values.
  std::span<DecoderBlock> blocks() { return blocks_; }
  Norm& final_norm() { return final_norm_.value(); }
  // Replace the values of plain matrices, keeping their types.  values [vocab, hidden] float32
  void set_embedding(Backend& backend, const Tensor& values);
  void set_head(Backend& backend, const Tensor& values);  // of a head of its own

  // Every matrix that a decoded token is multiplied by, the head last; of a mixture as many experts
  // as a token has.
  std::vector<const PackedMatrix*> weights() const;

  // The layers' shapes for KvStorage; `group_num_blocks` in order of the groups.
  std::vector<KvLayer> kv_layers(std::span<const int64_t> group_num_blocks,
                                 DType state_dtype = DType::f32) const;

 private:
  DecoderConfig config_;
  int64_t num_parameters_ = 0;
  PackedMatrix embedding_;
  std::optional<PositionEmbedding> positions_;
  std::optional<LayerInputs> layer_inputs_;
  std::optional<AltUpEnds> altup_ends_;
  std::optional<Norm> embedding_norm_;
  std::optional<PackedMatrix> head_;  // when it isn't the embedding
  std::optional<OwnedTensor> head_bias_;
  std::vector<Rope> ropes_;
  std::optional<DistanceScores> distance_scores_;
  std::vector<DecoderBlock> blocks_;
  std::vector<int> block_groups_;  // cache group of each block
  std::optional<Norm> final_norm_;
};

enum class AdapterUse : bool { none, any };

// Bytes of scratch for a forward of up to `max_rows` rows in a Decoder of this config, with or
// without adapters.
size_t forward_scratch_bytes(const DecoderConfig& config, int64_t max_rows, AdapterUse adapters);

}  // namespace paceline
