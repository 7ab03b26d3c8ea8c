// The supported model architectures of GGUF files, with facts that the files lack.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/gguf_metadata.h"

namespace paceline {

// A tensor's or a key's name in GGUF files, and what config.json or a checkpoint calls it.
struct GgufNamePair {
  std::string_view theirs;
  std::string_view ours;
};

// How a file describes the rope, beside the keys that all have.
enum class GgufRope : uint8_t {
  plain,
  partial,       // its config's default is a part of each head, so the share is always written
  by_layer,      // scaled in layers without a window alone
  long_factors,  // LongRoPE's lists are the tensors rope_factors_short and rope_factors_long
  growing,       // attention.temperature_scale: queries grow with their position
  untruncated,   // YaRN between dimensions that aren't whole numbers
};

// What mixes positions in the layers.
enum class GgufMixers : uint8_t {
  attention,
  delta_nets,      // or attention: attention.recurrent_layers, or every full_attention_interval-th
  convolutions,    // where attention.head_count_kv is 0
  channel_deltas,  // likewise: delta nets whose channels decay apart
  mamba2,          // likewise
  alone,           // Mamba 2 where feed_forward_length is 0 too, else a layer without a mixer
  beside,          // Mamba 2 and attention in every layer
  mamba1,          // where attention.head_count_kv is 0
  mamba1_only,     // no layer is attention, and none has an MLP
  mamba2_only,     // likewise
};

struct GgufArchitecture {
  std::string_view name;                 // general.architecture, and the prefix of its keys
  std::string_view model_type;           // of config.json
  std::string_view hf_class;             // architectures of config.json
  std::string_view windowed_type = {};   // model_type with a sliding window; empty: the same
  std::string_view windowed_class = {};  // its class
  std::string_view mixture_type = {};    // model_type with mixtures of experts; empty: the same
  std::string_view mixture_class = {};   // its class
  // Parts of the names of mixtures' tensors ("theirs", as checkpoint_name() has them) in
  // checkpoints of mixture_type.
  std::span<const GgufNamePair> mixture_names = {};
  std::string_view step_norms_type = {};   // model_type with ssm.dt_b_c_rms; empty: the same
  std::string_view step_norms_class = {};  // its class
  std::string_view sigmoid_type = {};      // model_type with expert_gating_func 2; empty: the same
  std::string_view sigmoid_class = {};     // its class
  std::string_view shared_type = {};       // model_type with a shared expert; empty: the same
  std::string_view shared_class = {};      // its class
  bool has_mixtures = false;               // of experts, in some or all layers
  std::string_view experts_field = "num_experts";  // the config's number of experts
  bool normalises_experts = false;  // their weights add up to 1, unless the file says more
  int64_t expert_gating = 1;        // expert_gating_func: 1 softmax, 2 sigmoid, 3 of the chosen
  // Rows of the query and key projections that rotate together are neighbours.
  bool interleaved_rotary = false;
  std::span<const GgufNamePair> tensors = {};  // of layers, where they differ from the usual ones
  // Further ones, of layers and outside, with the kind ("exp_probs_b.bias") and all.
  std::span<const GgufNamePair> whole_tensors = {};
  // Keys that hold a number of each layer, which checkpoints have as tensors of one element; with
  // a "?" behind those that have no dimension there.
  std::span<const GgufNamePair> layer_numbers = {};
  std::span<const GgufNamePair> fields = {};  // keys that are fields of config.json, where present
  std::span<const GgufNamePair> sizes = {};   // the same of integers
  GgufRope rope = GgufRope::plain;
  std::span<const GgufNamePair> flags = {};                // and of flags
  std::string_view theta_field = "rope_theta";             // of config.json
  std::string_view share_field = "partial_rotary_factor";  // likewise
  bool may_not_rotate = false;  // rope.scaling.finetuned: false means that no layer rotates
  std::string_view bias_field = "attention_bias";  // of config.json: q, k and v have biases
  std::string_view output_bias_field = {};  // that attention's output has one; empty: as q, k and v
  bool may_be_parallel = false;   // use_parallel_residual: blocks without a norm before the MLP
  bool may_have_qk_norm = false;  // use_qk_norm: where there are such norms
  bool joined_heads = false;      // kJoinedHeadsField
  bool has_norms_beside = false;  // attention and MLP side by side, behind one norm or two: Falcon
  bool four_norms = false;        // each branch has a norm before and after it
  bool norms_plus_one = false;    // files hold 1 + w of norms that compute 1 + w
  GgufMixers mixers = GgufMixers::attention;
  bool value_heads_in_turns = false;   // of delta nets: set_delta_net_order()
  bool has_latents = false;            // multi-head latent attention
  bool multiplied_weights = false;     // files have multipliers in the weights, not in keys
  bool has_position_sections = false;  // rope.dimension_sections: of time, height and width
  bool two_ropes = false;              // layers with a window have a rope of their own
  bool mixed_layers = false;           // add_gguf_mixed_layers(); sizes of heads by kind of layer
  std::string_view activation = "silu";
  int64_t default_window = 0;  // of windowed layers, when the file has no window; 0: none
  int64_t window_pattern = 0;  // every window_pattern-th layer has no window; 0: all are equal
  double attention_soft_cap = 0;
  double final_soft_cap = 0;
  // A model with this number of layers divides scores by sqrt(hidden size / heads), others by
  // sqrt(head size). No key of the file says so.
  int64_t widely_scaled_layers = 0;
};

// Ends the name of decay rates, which files have as -exp(A_log).
inline constexpr std::string_view kGgufDecayRates = ".A";

// The file's general.architecture. Throws Error unsupported naming it and the supported ones.
const GgufArchitecture& find_gguf_architecture(const GgufMetadata& metadata);

// The first architecture with the model_type, and with mixtures where the model has some; null: no
// file can hold the model.
const GgufArchitecture* find_gguf_architecture(std::string_view model_type, bool has_mixture);

// The names that tensors of a file with `num_layers` layers may have, those that checkpoint_name()
// gives one name in the order of preference.
std::vector<std::string> gguf_tensor_names(const GgufArchitecture& architecture,
                                           int64_t num_layers);

// The name in transformers' checkpoints of a tensor that checkpoint_name() has named so.
std::string transformers_name(const GgufArchitecture& architecture, std::string_view name);

// Converts "blk.3.attn_q.weight" to "model.layers.3.self_attn.q_proj.weight". Nothing for tables of
// rotary frequencies, which aren't weights; unknown names are kept.
std::optional<std::string> checkpoint_name(const GgufArchitecture& architecture,
                                           std::string_view gguf_name);

}  // namespace paceline
