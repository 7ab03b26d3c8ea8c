// DecoderConfig describes the computation of a decoder. No field is named after a model family.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/operands.h"
#include "layers/alternating_updates.h"
#include "layers/attention.h"
#include "layers/distance_scores.h"
#include "layers/gated_convolution.h"
#include "layers/gated_delta_net.h"
#include "layers/gated_mlp.h"
#include "layers/kv_storage.h"
#include "layers/latent_attention.h"
#include "layers/layer_inputs.h"
#include "layers/mamba1.h"
#include "layers/mamba2.h"
#include "layers/mixture_config.h"
#include "layers/rope.h"
#include "tensor/dtype.h"

namespace paceline {

constexpr int kNoRope = -1;  // of a layer whose queries and keys don't rotate

// What mixes the positions of a layer; none: it is an MLP or a mixture alone.
enum class MixerKind : uint8_t { attention, delta_net, convolution, mamba1, mamba2, none };

// The properties that differ between layers.
struct LayerConfig {
  MixerKind mixer = MixerKind::attention;
  int64_t window = 0;       // as AttentionParams::window; 0: full attention
  int rope_index = 0;       // into DecoderConfig::ropes, or kNoRope
  bool is_mixture = false;  // a mixture of experts instead of one MLP
  bool has_mlp = true;      // or a mixture
  bool chunked = false;     // as AttentionParams::chunked
  // As MlpConfig::gate_deviations.
  std::optional<float> gate_deviations = {};
  bool joins_next = false;  // the next layer's mixer reads what this one's does: both are one layer
                            // of the files
  // 0: those of the config.
  int64_t head_dim = 0;
  int64_t num_kv_heads = 0;
  int64_t intermediate_size = 0;
  bool values_are_keys = false;         // k_proj makes the values, too, and there is no v_proj
  int64_t shares_cache_of = kOwnCache;  // an earlier layer, whose keys and values it attends to

  bool operator==(const LayerConfig&) const = default;
};

// Queries grow with their position p: by 1 + beta * log(1 + floor((p + offset) / context)) (Llama
// 4).
struct QueryGrowth {
  double beta = 0.0;  // 0: they don't
  int64_t context = 0;
  int64_t offset = 0;
  bool unrotated_alone = false;  // those of layers that don't rotate

  bool operator==(const QueryGrowth&) const = default;
};

// The canonical names of a block's norms; an empty name means the block has no such norm.
struct BlockNorms {
  std::string before_attention = "input_layernorm";
  std::string after_attention;  // of the attention's output, before the residual is added
  std::string before_mlp = "post_attention_layernorm";
  std::string after_mlp;

  bool operator==(const BlockNorms&) const = default;
};

struct DecoderConfig {
  std::string family;  // model_type, for descriptions only
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t rotary_dim = 0;
  int64_t max_position = 0;  // context that the model was trained for

  Activation activation = Activation::silu;
  NormKind norm_kind = NormKind::rms;
  bool norm_bias = false;   // of layer norms, but not those of q and k
  bool norm_weight = true;  // false: norms have neither weight nor bias
  float norm_eps = 1e-6f;
  float norm_weight_offset = 0.0f;  // 1: stored norm weights are w of (1 + w)
  float embedding_scale = 1.0f;
  int64_t num_positions = 0;    // of a vector each that is added to the embedding; 0: none
  int64_t first_position = 0;   // rows of embed_positions before the first position's
  bool sinusoids = false;       // as PositionEmbeddingConfig::sinusoids
  int64_t zero_position = -1;   // as PositionEmbeddingConfig::zero_row
  int64_t num_token_types = 0;  // of a vector each, likewise; a text's tokens have the first type
  bool embedding_norm = false;  // of what the first block reads
  float attention_scale = 1.0f;
  float attention_soft_cap = 0.0f;  // 0: none
  float final_soft_cap = 0.0f;      // 0: none
  bool bidirectional = false;       // attention in both directions: embeddings only
  bool classifies = false;      // a head for labels of whole texts (score.weight) instead of tokens
  float residual_scale = 1.0f;  // of what attention and MLP add to the residual stream
  float logits_scale = 1.0f;
  bool multiplied_weights = false;  // multipliers are in the weights, and in those of GGUF adapters
  QueryGrowth query_growth;
  QkNorm qk_norm = QkNorm::none;
  bool qk_norm_weight = true;        // false: these norms have no weights
  bool norms_rotated_alone = false;  // layers that don't rotate have no norms of q and k
  bool value_norm = false;           // of each head of the values, without weights
  bool qk_norm_bias = false;         // of layer norms
  bool rotates_first = false;        // q and k are normalised behind the rotation
  bool joined_norms = false;         // as AttentionConfig::joined_norms
  float clip_qkv = 0.0f;             // as AttentionConfig::clip
  RopePairs rope_pairs = RopePairs::halves;
  bool norms_sums = false;      // norms behind attention and MLP are those of the residual stream
  bool layer_scalars = false;   // each layer's end multiplies the residual stream by a layer_scalar
  bool first_is_normed = true;  // the embedding, before the first block's attention
  // The MLP reads what attention reads, or its own norm of the same, if it has one; both are added
  // together.
  bool parallel_block = false;
  bool qkv_bias = false;
  bool output_bias = false;
  bool attention_sinks = false;
  bool head_gates = false;      // each head's output is multiplied by one sigmoid, of g_proj
  bool attention_gate = false;  // each head's output is multiplied by sigmoids; q_proj has them too
  bool mlp_bias = false;
  bool mlp_down_bias = false;  // of its last projection alone
  bool gated_mlp = true;
  bool self_gated_mlp = false;          // no gate of its own: up takes its place
  bool xielu = false;                   // as MlpConfig::xielu
  float mlp_gate_scale = 1.0f;          // of gates before the activation
  float mlp_output_scale = 1.0f;        // of what the MLP adds to the residual stream
  float attention_output_scale = 1.0f;  // of what attention adds
  bool fused_qkv = false;               // stored as one matrix
  bool grouped_qkv = false;             // as AttentionConfig::grouped_qkv
  int64_t qkv_shards = 0;               // as AttentionConfig::qkv_shards
  bool fused_gate_up = false;           // stored as one matrix
  bool up_first = false;                // in it
  std::string mlp = "mlp";  // what the MLP is called within its block; empty: it has no name
  MlpNames mlp_names;
  AttentionNames attention_names;
  bool tied_head = false;  // the embedding is the head, unless the files have a lm_head.weight
  bool has_head = true;    // false: neither, so the model makes vectors or labels of texts only
  bool head_bias = false;  // lm_head.bias is added to the logits

  // Of all layers that are attention: they have one kv head of its row_dim() elements, whose values
  // are the first ones.
  std::optional<LatentConfig> latent;
  std::optional<MixtureConfig> mixture;               // of the layers that are mixtures
  std::optional<LayerInputConfig> layer_inputs;       // of each layer, beside its branches
  std::optional<AltUpConfig> alternating;             // residual streams, if there are several
  int64_t laurel_rank = 0;                            // of a Laurel beside each mixer; 0: none
  std::optional<DeltaNetConfig> delta_net;            // of the layers that are one
  std::optional<GatedConvolutionConfig> convolution;  // of the layers that are one
  std::optional<Mamba1Config> mamba1;                 // of the layers that are it
  std::optional<Mamba2Config> mamba2;                 // of the layers that are it

  BlockNorms norms;
  std::optional<BlockNorms> state_norms;  // of the layers with states, where these have others
  std::string final_norm = "norm";        // its canonical name; empty: none
  std::vector<RopeConfig> ropes;
  std::optional<DistanceScoresConfig> distance_scores;  // of all layers, beside ropes or instead
  std::optional<DisentangledConfig> disentangled;       // likewise, with weights of each layer
  std::vector<LayerConfig> layers;
  int64_t num_unused_layers = 0;  // whose weights may come after those of `layers` in the files

  DType dtype = DType::bf16;  // of the files

  // What the ropes of a sequence of up to `length` tokens, its output included, are stretched to:
  // the most of RopeConfig::stretched_length. Sequences share keys only where it is the same.
  int64_t stretched_length(int64_t length) const;
  // The factor of each position's queries; none where they don't grow.
  std::vector<float> query_factors(Indices<int32_t> positions) const;

  bool operator==(const DecoderConfig&) const = default;
  const BlockNorms& norms_of(int64_t layer_index) const;
  int64_t num_layers() const { return static_cast<int64_t>(layers.size()); }
  // Sizes of a layer, and of a rope.
  int64_t head_dim_of(int64_t layer_index) const;
  int64_t num_kv_heads_of(int64_t layer_index) const;
  int64_t intermediate_size_of(int64_t layer_index) const;
  int64_t rotary_dim_of(const RopeConfig& rope) const;
  // The largest ones of all layers.
  int64_t most_head_dim() const;
  int64_t most_intermediate_size() const;
  // Whether a layer attends to keys and values of another one.
  bool shares_cache(int64_t layer_index) const;
  // The layer of the files that a layer is, or is a part of.
  int64_t stored_layer(int64_t layer_index) const;
  int64_t num_stored_layers() const { return stored_layer(num_layers()); }
  // Of the stores of the layers that are attention.
  int64_t values_in_keys() const { return latent ? latent->rank : 0; }
  // Whether query_factors() are those of a layer.
  bool grows_queries(int64_t layer_index) const;
  // Whether some layers see chunks of the context alone.
  bool has_chunks() const;
  // Whether positions add to the scores of attention.
  bool has_position_scores() const { return distance_scores || disentangled; }
  // Whether some layers have states instead of keys and values.
  bool has_states() const;
  // More than the last inputs of convolutions.
  bool has_state_matrices() const;
};

// Layers whose memory of a sequence is assigned as one.
struct LayerGroup {
  bool is_recurrent = false;  // states, instead of keys and values
  int64_t window = 0;
  bool holds_open_rows = false;  // the rows of their open chunks, instead of states

  auto operator<=>(const LayerGroup&) const = default;
};
// One of each: full attention first, then windows in ascending order, then states, then their open
// rows.
std::vector<LayerGroup> cache_groups(const DecoderConfig& config);
// The index of a layer's group in cache_groups; 0 for one without a mixer. The group of the open
// rows of a layer with a state is the next one.
int cache_group_of(const DecoderConfig& config, int64_t layer_index);
// Those of a sequence in a layer; none of attention.
LayerStateElements state_elements(const DecoderConfig& config, int64_t layer_index);
// The shape of a layer's memory, without numbers of blocks; without heads where it has none of its
// own.
KvLayer kv_layer(const DecoderConfig& config, int64_t layer_index, DType state_dtype);
// Those of its matrices, which every chunk of rows reads.
int64_t state_matrix_elements(const DecoderConfig& config, int64_t layer_index);

}  // namespace paceline
