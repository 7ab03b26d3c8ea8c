// A family maps a config.json to a DecoderConfig; the registry finds the family of a model.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "models/hf_config.h"
#include "models/rope_fields.h"
#include "weights/weight_reader.h"

namespace paceline {

struct Family {
  std::string_view model_type;
  DecoderConfig (*read)(const HfConfig& config, const WeightReader& weights);
};

std::span<const Family> families();

// The config of the text decoder from a config.json, which may have it in `text_config`. Without a
// model_type a model with q_norm is Qwen 3, any other Qwen 2. `where` names the file in errors.
// Throws Error unsupported or invalid naming the field.
DecoderConfig read_decoder_config(const Json& json, const WeightReader& weights,
                                  std::string_view where);

// Throws Error unsupported as read_decoder_config() does for a model that can't be computed
// whatever its weights are: a model_type without a family, a refused field.
void check_model_kind(const Json& json, std::string_view where);

// What a config calls its sizes.
struct SizeNames {
  std::string_view hidden_size = "hidden_size";
  std::string_view intermediate_size = "intermediate_size";
  std::string_view num_heads = "num_attention_heads";
  std::string_view num_kv_heads = "num_key_value_heads";  // empty: as many as heads
  std::string_view head_dim = "head_dim";                 // empty: hidden size / heads
  std::string_view max_position = "max_position_embeddings";
  bool or_usual = false;  // the names above are read, too, but those of heads' and inner sizes
};

// transformers' defaults, which published configs of a family rely on; nothing: the field is
// required, or has the default in the comment.
struct CommonDefaults {
  std::optional<int64_t> vocab_size = {};
  std::optional<int64_t> num_heads = {};
  std::optional<int64_t> num_kv_heads = {};  // else, and for null, the number of heads
  std::optional<int64_t> head_dim = {};      // else hidden size / heads
  std::optional<int64_t> intermediate_size = {};
  int64_t inner_factor = 0;  // > 0: it is this times the hidden size, instead
  int64_t max_position = 2048;
  bool tied_head = false;
  std::string_view norm_eps_key = "rms_norm_eps";  // empty: the config has none
  double norm_eps = 1e-6;
  std::optional<int64_t> hidden_size = {};
  SizeNames names = {};
};

// Reads the fields that all families have, in transformers' spellings. head_dim comes from the
// field, else from the q projection, else from `defaults`.
DecoderConfig read_common(const HfConfig& config, const WeightReader& weights,
                          const CommonDefaults& defaults = {});

// Sets an MLP without a gate, and its activation. relu2 multiplies its input by a relu of it.
void read_plain_mlp(const HfConfig& config, std::string_view key, std::string_view otherwise,
                    DecoderConfig& decoder);

// Sets layer norms with biases.
void use_layer_norms(DecoderConfig& decoder);
// Makes positions vectors that are added to the embedding, instead of rotations; the layers must be
// set. `first`: rows of the table before the first position's.
void use_learned_positions(int64_t first, DecoderConfig& decoder);

// Makes positions scores of attention instead of rotations (ALiBi); the layers must be set.
void use_alibi(DistanceScoreKind kind, DecoderConfig& decoder);

// `clip_qkv`; 0: q, k and v aren't clipped.
float read_clip(const HfConfig& config);

// The norms of blocks that have them behind attention and MLP alone.
extern const BlockNorms kNormsBehind;
// Those of blocks that have them before and behind both.
extern const BlockNorms kNormsAround;

int64_t read_num_layers(const HfConfig& config);
// Whether each layer rotates: `no_rope_layers` has 1 where it does. Without it every
// no_rope_layer_interval-th layer doesn't.
std::vector<bool> read_rotating_layers(const HfConfig& config, int64_t num_layers);
// Layers with the same window; 0: none.
std::vector<LayerConfig> uniform_layers(int64_t num_layers, int64_t window);
// `sliding_window` of a family that has no window without it; 0: none.
int64_t read_optional_window(const HfConfig& config);
// Every pattern-th layer has full attention, the others slide.
std::vector<bool> sliding_pattern(int64_t num_layers, int64_t pattern);
// Layers with the window of `sliding_window` where `sliding` is true. Throws Error invalid naming
// the field when a layer slides and `window` is nothing.
std::vector<LayerConfig> windowed_layers(const HfConfig& config, const std::vector<bool>& sliding,
                                         std::optional<int64_t> window);

// What `layer_types` calls the layers of a kind.
struct MixerName {
  std::string_view name;
  std::string_view old_name = name;  // of older files, which say "attention" too
  MixerKind kind;
};
// Sets the mixers of the layers that `layer_types`, or layers_block_type in older files, calls so;
// it calls the others full_attention. Without the field it returns false and changes nothing.
bool read_mixers(const HfConfig& config, const MixerName& other, std::vector<LayerConfig>& layers);

// Each is in a file of its own in this folder.
DecoderConfig read_llama(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_iquestcoder(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_internlm3(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_apertus(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_seed_oss(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_arcee(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_nemotron(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_hunyuan(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_hunyuan_moe(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_ernie4_5_moe(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_olmo(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_phi(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_gpt_neox(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_gptj(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_gpt2(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_gpt_bigcode(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_opt(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_falcon(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_gpt_neo(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_persimmon(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_exaone(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_jais2(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_flex_olmo(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_hyperclovax(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_vaultgemma(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_helium(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_ernie4_5(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_cwm(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_mistral(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_ministral(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_qwen2(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_qwen3(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_qwen2_vl(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_qwen3_vl(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_qwen2_moe(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_qwen3_moe(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_mellum(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_qwen3_next(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_qwen3_5(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_qwen3_5_moe(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_olmo_hybrid(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_lfm2(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_lfm2_moe(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_lfm3(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_bloom(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_phimoe(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_llama4(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_nanochat(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_granite_swa(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_granite_moe_swa(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_sarvam_moe(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_exaone_moe(const HfConfig& config, const WeightReader& weights);
// The layers of EXAONE 4, of which those without a window don't rotate where others have one.
std::vector<LayerConfig> read_exaone_layers(const HfConfig& config);
DecoderConfig read_codegen(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_biogpt(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_xglm(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_mpt(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_olmoe(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_mixtral(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_solar_open(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_dots1(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_minimax_m2(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_glm4_moe(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_deepseek_v2(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_deepseek_v3(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_sarvam_mla(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_glm4_moe_lite(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_youtu(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_mistral4(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_kimi_linear(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_minicpm3(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_gpt_oss(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_gemma(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_gemma2(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_gemma3(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_gemma3n(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_gemma4(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_gemma4_unified(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_phi3(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_smollm3(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_olmo2(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_olmo3(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_granite(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_granite_moe(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_granite_moe_shared(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_granite_moe_hybrid(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_mamba(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_falcon_mamba(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_jamba(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_mamba2_alone(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_falcon_h1(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_nemotron_h(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_bamba(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_glm(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_glm4(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_exaone4(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_cohere(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_cohere2(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_stablelm(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_starcoder2(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_modernbert(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_nomic_bert(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_gte(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_new_gte(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_mpnet(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_deberta_v2(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_eurobert(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_bert(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_roberta(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_distilbert(const HfConfig& config, const WeightReader& weights);
DecoderConfig read_ministral3(const HfConfig& config, const WeightReader& weights);

}  // namespace paceline
