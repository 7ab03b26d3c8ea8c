#include "train/decoder_training.h"

#include <fmt/format.h>

#include "base/error.h"
#include "kernels/backend.h"
#include "models/decoder.h"

namespace paceline {
namespace {

// Of decoders that train on the CPU.
void expect_trained_by(const Decoder& decoder, const Backend& backend) {
  const DecoderConfig& config = decoder.config();
  const BackendLimits limits = backend.limits();
  const auto refuse = [&](const std::string& found) {
    throw Error(ErrorCode::unsupported,
                fmt::format("train: the model has {}, whose gradients {} doesn't compute; it "
                            "trains on the CPU: --device cpu",
                            found, backend.name()));
  };
  if (!limits.all_training && config.mixture) refuse("mixtures of experts");
  if (!limits.all_training && config.has_states()) refuse("layers with states");
  if (!limits.all_training && config.attention_sinks) refuse("attention sinks (self_attn.sinks)");
  if (config.head_dim > limits.gradient_head_dim) {
    refuse(fmt::format("heads of {} elements (head_dim), more than {}", config.head_dim,
                       limits.gradient_head_dim));
  }
}

}  // namespace

void expect_trainable(const Decoder& decoder, const Backend& backend) {
  if (decoder.config().bidirectional) {
    throw Error(ErrorCode::unsupported,
                "train: the model attends in both directions, so its next tokens can't be trained");
  }
  if (!decoder.config().has_head) {
    throw Error(ErrorCode::unsupported,
                "train: the model's files have no lm_head.weight, so its next tokens can't be "
                "trained; if its embedding is the head, set tie_word_embeddings to true in its "
                "config.json");
  }
  if (decoder.config().xielu) {
    throw Error(ErrorCode::unsupported,
                "train: the model's activation is xIELU, whose gradient isn't computed");
  }
  if (decoder.config().embedding_norm) {
    throw Error(ErrorCode::unsupported,
                fmt::format("train: the model has a norm of its embedding ({}), whose gradient "
                            "isn't computed",
                            decoder.config().family));
  }
  if (decoder.config().has_position_scores()) {
    throw Error(ErrorCode::unsupported,
                "train: the model's scores of attention depend on distances (ALiBi), and the "
                "gradient of such attention isn't computed");
  }
  if (decoder.config().has_chunks() || decoder.config().query_growth.unrotated_alone) {
    throw Error(ErrorCode::unsupported,
                "train: the model attends to chunks of the context (attention_chunk_size) or its "
                "queries grow in some layers (attn_temperature_tuning), whose gradients aren't "
                "computed");
  }
  const auto& experts = decoder.config().mixture;
  if (experts && (experts->routing.score == ExpertScore::sparse_mixer || experts->scales_inputs)) {
    throw Error(ErrorCode::unsupported,
                fmt::format("train: the gradient of {}'s choice of experts isn't computed",
                            decoder.config().family));
  }
  if (decoder.config().clip_qkv > 0) {
    throw Error(ErrorCode::unsupported,
                "train: the model clips queries, keys and values (clip_qkv), whose gradient isn't "
                "computed");
  }
  if (decoder.config().value_norm) {
    throw Error(ErrorCode::unsupported,
                fmt::format("train: the model's attention has norms of values ({}), whose gradient "
                            "isn't computed",
                            decoder.config().family));
  }
  if (decoder.config().delta_net && decoder.config().delta_net->channel_decay) {
    throw Error(ErrorCode::unsupported,
                "train: the model has Kimi delta attention (a decay for each channel), whose "
                "gradient isn't computed");
  }
  if (decoder.config().latent) {
    throw Error(ErrorCode::unsupported,
                "train: the model has multi-head latent attention (kv_lora_rank), whose gradient "
                "isn't computed");
  }
  expect_trained_by(decoder, backend);
}

void expect_all_trainable(const Decoder& decoder, const Backend& backend) {
  if (!backend.limits().all_training) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("train: {} trains LoRA alone: leave --fine-tune-type full out, or train "
                    "all weights on the CPU with --device cpu",
                    backend.name()));
  }
  if (decoder.config().attention_sinks) {
    throw Error(ErrorCode::unsupported,
                "train: the model has attention sinks (self_attn.sinks), whose gradients aren't "
                "computed; train with LoRA");
  }
  if (decoder.config().head_bias) {
    throw Error(ErrorCode::unsupported,
                "train: the model's head has a bias (lm_head.bias), whose gradient isn't computed; "
                "train with LoRA");
  }
  if (decoder.config().joined_norms) {
    throw Error(ErrorCode::unsupported,
                "train: the model's norms of all heads' queries are one tensor (use_qk_norm), "
                "which isn't written; train with LoRA");
  }
  if (decoder.config().num_positions > 0) {
    throw Error(ErrorCode::unsupported,
                "train: the model's positions are learned vectors, whose gradients aren't "
                "computed; train with LoRA");
  }
  const auto& mixture = decoder.config().mixture;
  if (!mixture || !mixture->has_choice_bias) return;
  throw Error(
      ErrorCode::unsupported,
      fmt::format("train: the model's mixtures of experts choose with a bias ({}), which has "
                  "no gradient; train with LoRA",
                  mixture->names.choice_bias));
}

}  // namespace paceline
