#include "train/decoder_training.h"

#include "base/error.h"
#include "models/decoder.h"

namespace paceline {

void expect_trainable(const Decoder& decoder) {
  if (decoder.config().bidirectional) {
    throw Error(ErrorCode::unsupported,
                "train: the model attends in both directions, so its next tokens can't be trained");
  }
  if (decoder.config().attention_sinks) {
    throw Error(ErrorCode::unsupported,
                "train: the model has attention sinks, which can't be trained yet");
  }
}

void expect_all_dense(const Decoder& decoder) {
  for (const DecoderBlock& block : decoder.blocks()) {
    if (block.mlp().dense() != nullptr) continue;
    throw Error(ErrorCode::unsupported,
                "train: the model has mixtures of experts, whose weights can't be trained yet; "
                "train with LoRA, which adapts attention and dense layers");
  }
}

}  // namespace paceline
