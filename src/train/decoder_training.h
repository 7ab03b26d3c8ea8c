// DecoderTraining is what of a decoder is trained: matrices of LoRA beside its products, and the
// tensors to which a pass adds the gradients of the decoder's own weights.
#pragma once

#include <optional>
#include <vector>

#include "train/block_operations.h"
#include "train/linear_operation.h"
#include "train/mixture_training.h"

namespace paceline {

class Backend;
class Decoder;

// Throws Error unsupported where a decoder has parts whose gradients aren't computed, by anything
// or by this backend.
void expect_trainable(const Decoder& decoder, const Backend& backend);
// Throws Error unsupported where a decoder has weights that can't be trained: a bias of the choice
// of experts, or attention sinks; and where the backend trains none.
void expect_all_trainable(const Decoder& decoder, const Backend& backend);

struct BlockTraining {
  LinearTraining qkv;
  LinearTraining output;
  LinearTraining scan_parts, scan_steps;  // within Mamba 1
  LinearTraining gate_up;
  LinearTraining down;
  MixtureTraining mixture;  // of a mixture, instead of gate_up and down
  NormGradient before_mixer;
  HeadNormGradients head_norms;
  std::vector<Tensor> own_weights;  // gradients of Mixer::own_weights(), or none
  NormGradient after_mixer;
  NormGradient before_mlp;
  NormGradient after_mlp;
};

struct DecoderTraining {
  std::vector<BlockTraining> blocks;  // one for each of the decoder's
  NormGradient final_norm;
  // Float32 [vocab, hidden]. An embedding that is the head, too, has two tensors, so that the order
  // of their sums doesn't depend on micro-batches.
  std::optional<Tensor> embedding;  // of rows that were looked up
  std::optional<Tensor> head;       // of logits
};

}  // namespace paceline
