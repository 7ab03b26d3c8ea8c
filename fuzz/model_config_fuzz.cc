// Any bytes as a config.json: refused with an Error that names it, or a decoder's configuration
// with sizes in range and usable ropes.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "fuzz/json_mutator.h"
#include "kernels/backend.h"
#include "models/family.h"
#include "weights/checkpoint.h"

namespace {

using namespace paceline;

constexpr std::string_view kWords[] = {"llama",
                                       "mistral",
                                       "qwen2",
                                       "qwen3",
                                       "gemma2",
                                       "gemma3_text",
                                       "text_config",
                                       "head_dim",
                                       "sliding_window",
                                       "layer_types",
                                       "full_attention",
                                       "sliding_attention",
                                       "rope_parameters",
                                       "rope_scaling",
                                       "rope_type",
                                       "linear",
                                       "llama3",
                                       "yarn",
                                       "longrope",
                                       "factor",
                                       "rope_theta",
                                       "short_factor",
                                       "long_factor",
                                       "truncate",
                                       "mscale",
                                       "partial_rotary_factor",
                                       "silu",
                                       "gelu",
                                       "float16",
                                       "num_hidden_layers",
                                       "vocab_size",
                                       "original_max_position_embeddings",
                                       "qwen3_moe",
                                       "mixtral",
                                       "glm4_moe",
                                       "gpt_oss",
                                       "granitemoeshared",
                                       "granitemoehybrid",
                                       "position_embedding_type",
                                       "layers_block_type",
                                       "num_experts",
                                       "num_local_experts",
                                       "n_routed_experts",
                                       "num_experts_per_tok",
                                       "moe_intermediate_size",
                                       "shared_intermediate_size",
                                       "n_shared_experts",
                                       "n_group",
                                       "topk_group",
                                       "first_k_dense_replace",
                                       "mlp_only_layers",
                                       "decoder_sparse_step"};

constexpr size_t kMaxBytes = size_t{64} << 20;  // of the ropes' frequencies

void require(bool condition) {
  if (!condition) std::abort();
}

void check(const MixtureConfig& mixture) {
  const RoutingParams& routing = mixture.routing;
  require(routing.num_experts >= 1 && routing.experts_per_token >= 1);
  require(routing.experts_per_token <= routing.num_experts && mixture.expert_size >= 1);
  require(routing.num_groups >= 1 && routing.num_experts % routing.num_groups == 0);
  const int64_t group_size = routing.num_experts / routing.num_groups;
  require(routing.groups_kept >= 1 && routing.groups_kept <= routing.num_groups);
  require(routing.groups_kept * group_size >= routing.experts_per_token);
  require(routing.shared == SharedExpert::none || mixture.shared_size >= 1);
  require(std::isfinite(routing.scale));
}

void check(const DecoderConfig& config) {
  require(config.vocab_size >= 1 && config.hidden_size >= 1 && config.intermediate_size >= 1);
  require(config.num_kv_heads >= 1 && config.num_heads % config.num_kv_heads == 0);
  require(config.head_dim >= 2 && config.head_dim <= 4096);
  require(config.rotary_dim >= 2 && config.rotary_dim <= config.head_dim);
  require(config.num_layers() >= 1 && config.num_layers() <= 1024);
  require(config.norm_eps >= 0 && std::isfinite(config.attention_scale));
  require(config.attention_soft_cap >= 0 && config.final_soft_cap >= 0);
  const auto backend = make_reference_backend();
  backend->memory().set_memory_limit(kMaxBytes);
  for (const RopeConfig& rope : config.ropes) {
    require(std::isfinite(rope.attention_factor) && rope.attention_factor > 0);
    const Rope made(rope, config.rotary_dim, *backend);
  }
  if (config.mixture) check(*config.mixture);
  for (const LayerConfig& layer : config.layers) {
    require(config.mixture || !layer.is_mixture);
    require(layer.window >= 0 && layer.rope_index >= kNoRope);
    require(layer.rope_index < static_cast<int>(config.ropes.size()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Memory memory;
  const auto weights = make_dummy_checkpoint(DType::f32, 0, memory);
  try {
    check(read_decoder_config(parse_json(text, "input"), WeightReader(*weights), "input"));
  } catch (const Error& error) {
    require(error.code() == ErrorCode::unsupported || error.code() == ErrorCode::invalid);
    require(std::string_view(error.what()).starts_with("input: "));
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size, size_t max_size,
                                          unsigned seed) {
  return fuzz::mutate_json(kWords, 10, bytes, size, max_size, seed);
}
