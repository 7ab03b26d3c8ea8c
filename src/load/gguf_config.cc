#include "load/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "load/gguf_fields.h"
#include "load/gguf_layers.h"
#include "load/gguf_mixed_layers.h"
#include "load/gguf_mixers.h"
#include "load/gguf_tokens.h"
#include "models/hf_config.h"
#include "text/generation_options.h"

namespace paceline {
namespace {

constexpr int64_t kMaxLayers = 1024;

// Without the layers behind them that predict further tokens.
int64_t num_layers(const GgufFields& fields) {
  const int64_t layers = fields.size("block_count");
  if (layers > kMaxLayers) {
    fields.corrupt("block_count", fmt::format("{}, at most {} are read", layers, kMaxLayers));
  }
  constexpr std::string_view kFurther = "nextn_predict_layers";
  const int64_t further = fields.integer(kFurther).value_or(0);
  if (further < 0 || further >= layers) {
    fields.corrupt(kFurther, fmt::format("{} of {} layers", further, layers));
  }
  return layers - further;
}

// Whether there are layers of attention and MLPs.
bool has_attention(const GgufFields& fields) {
  const GgufMixers mixers = fields.architecture().mixers;
  return mixers != GgufMixers::mamba1_only && mixers != GgufMixers::mamba2_only;
}

GgufHeads heads_of(const GgufFields& fields) {
  if (!has_attention(fields)) return {1, 1};
  const int64_t query = fields.layer_size("attention.head_count");
  const bool grouped = fields.metadata().contains(fields.key("attention.head_count_kv"));
  return {query, grouped ? gguf_key_heads(fields) : query};
}

int64_t head_dim_of(const GgufFields& fields) {
  if (!has_attention(fields)) return fields.size("embedding_length");
  if (fields.architecture().has_latents) return fields.size("rope.dimension_count");
  if (fields.architecture().mixed_layers) return fields.size("attention.key_length_swa");
  const int64_t otherwise =
      fields.size("embedding_length") / fields.layer_size("attention.head_count");
  const int64_t head_dim = fields.integer("attention.key_length").value_or(otherwise);
  const int64_t value_dim = fields.integer("attention.value_length").value_or(head_dim);
  if (value_dim != head_dim) {
    fields.unsupported("attention.value_length",
                       fmt::format("values of {} elements beside keys of {}", value_dim, head_dim));
  }
  return head_dim;
}

// The rows of the embedding.
int64_t vocabulary_size(const GgufFile& file) {
  constexpr std::string_view kName = "token_embd.weight";
  const GgufTensorInfo* table = file.find_tensor(kName);
  if (table != nullptr && table->extents.rank() == 2) return table->extents[0];
  throw Error(ErrorCode::corrupt, fmt::format("{}: tensor {} {}", file.path().string(), kName,
                                              table == nullptr ? "is missing" : "isn't a matrix"));
}

// A fraction of `head_dim`: the config's reader truncates the product, which must be `rotated`.
double rotated_share(int64_t rotated, int64_t head_dim) {
  const auto whole = static_cast<double>(head_dim);
  double share = static_cast<double>(rotated) / whole;
  while (static_cast<int64_t>(whole * share) < rotated) share = std::nextafter(share, 2.0);
  return share;
}

void add_rotated(const GgufFields& fields, int64_t head_dim, Json::Object& config) {
  const int64_t rotated = fields.integer("rope.dimension_count").value_or(head_dim);
  if (rotated == head_dim && fields.architecture().rope != GgufRope::partial) return;
  constexpr int64_t kMaxHeadDim = int64_t{1} << 24;  // rotated_share() needs exact doubles
  if (head_dim > kMaxHeadDim) {
    fields.corrupt("attention.key_length", fmt::format("{}, at most {}", head_dim, kMaxHeadDim));
  }
  if (rotated < 2 || rotated > head_dim) {
    fields.corrupt("rope.dimension_count",
                   fmt::format("{}, expected 2 to the head's {}", rotated, head_dim));
  }
  const GgufRope kind = fields.architecture().rope;
  if (kind != GgufRope::partial && kind != GgufRope::long_factors) {
    fields.unsupported("rope.dimension_count",
                       fmt::format("heads of {} elements with {} rotated", head_dim, rotated));
  }
  config.emplace_back(std::string(fields.architecture().share_field),
                      rotated_share(rotated, head_dim));
}

// query_pre_attn_scalar, whose reciprocal square root scales the scores. The result is a whole
// number if the stored scale is that of one.
double scores_divisor(const GgufFields& fields, int64_t layers, int64_t head_dim) {
  const bool widely = layers == fields.architecture().widely_scaled_layers;
  const auto otherwise = static_cast<double>(
      widely ? fields.size("embedding_length") / heads_of(fields).query : head_dim);
  const auto scale = fields.metadata().number(fields.key("attention.scale"));
  if (!scale || *scale == 0.0) return otherwise;
  constexpr double kRounding = 2e-7;  // of a float32 and of what it was computed from
  const double divisor = 1.0 / (*scale * *scale);
  if (!std::isfinite(divisor)) fields.corrupt("attention.scale", "out of range");
  const double whole = std::round(divisor);
  return std::abs(*scale * std::sqrt(whole) - 1.0) <= kRounding ? whole : divisor;
}

void check_scale(const GgufFields& fields, int64_t head_dim) {
  const auto scale = fields.number("attention.scale");
  if (!scale || *scale == 0.0) return;
  const double usual = 1.0 / std::sqrt(static_cast<double>(head_dim));
  if (std::abs(*scale - usual) <= 1e-5 * usual) return;
  fields.unsupported("attention.scale", fmt::format("scores scaled by {}", *scale));
}

// The architecture's own keys, and what its tensors say.
void add_own_fields(const GgufFile& file, const GgufFields& fields, Json::Object& config) {
  for (const GgufNamePair& field : fields.architecture().fields) {
    if (const auto value = fields.number(field.theirs)) {
      config.emplace_back(std::string(field.ours), *value);
    }
  }
  for (const GgufNamePair& size : fields.architecture().sizes) {
    if (const auto value = fields.integer(size.theirs)) {
      config.emplace_back(std::string(size.ours), *value);
    }
  }
  for (const GgufNamePair& flag : fields.architecture().flags) {
    if (const auto value = fields.metadata().boolean(fields.key(flag.theirs))) {
      config.emplace_back(std::string(flag.ours), *value);
    }
  }
  const auto has = [&](std::string_view name) { return file.find_tensor(name) != nullptr; };
  if (fields.architecture().may_have_qk_norm) {
    config.emplace_back("use_qk_norm", has("blk.0.attn_q_norm.weight"));
  }
  if (fields.architecture().joined_heads) {
    config.emplace_back(std::string(kJoinedHeadsField), true);
  }
  if (fields.architecture().has_norms_beside) {
    const GgufHeads heads = heads_of(fields);
    const bool has_two = has("blk.0.attn_norm_2.weight");
    const bool is_grouped = heads.key > 1 && heads.key < heads.query;
    config.emplace_back("new_decoder_architecture", has_two || is_grouped);
    config.emplace_back("num_ln_in_parallel_attn", int64_t{has_two ? 2 : 1});
    config.emplace_back("multi_query", heads.key == 1);
  }
  if (!fields.architecture().may_be_parallel) return;
  config.emplace_back("qk_layernorm", file.find_tensor("blk.0.attn_q_norm.weight") != nullptr);
  const bool is_parallel = file.find_tensor("blk.0.ffn_norm.weight") == nullptr;
  config.emplace_back("use_parallel_residual", is_parallel);
}

void add_four_norm_fields(const GgufFields& fields, int64_t layers, int64_t head_dim,
                          Json::Object& config) {
  const GgufArchitecture& architecture = fields.architecture();
  config.emplace_back("hidden_activation", std::string(architecture.activation));
  const double divisor = scores_divisor(fields, layers, head_dim);
  const bool whole = divisor == std::floor(divisor) && divisor < 1e9;
  config.emplace_back("query_pre_attn_scalar",
                      whole ? Json(static_cast<int64_t>(divisor)) : Json(divisor));
  const auto cap = [&](std::string_view theirs, std::string ours, double otherwise) {
    const double value = fields.number(theirs).value_or(otherwise);
    if (value < 0) fields.corrupt(theirs, fmt::format("{}, expected 0 (none) or more", value));
    config.emplace_back(std::move(ours), value > 0 ? Json(value) : Json());
  };
  cap("attn_logit_softcapping", "attn_logit_softcapping", architecture.attention_soft_cap);
  cap("final_logit_softcapping", "final_logit_softcapping", architecture.final_soft_cap);
  if (architecture.two_ropes) {
    config.emplace_back("rope_local_base_freq", fields.number("rope.freq_base_swa").value_or(1e4));
  }
}

void add_special_ids(const GgufMetadata& metadata, Json::Object& config) {
  if (const auto bos = gguf_token_id(metadata, "bos")) config.emplace_back("bos_token_id", *bos);
  if (const auto eos = gguf_token_id(metadata, "eos")) config.emplace_back("eos_token_id", *eos);
  if (const auto pad = gguf_token_id(metadata, "padding")) {
    config.emplace_back("pad_token_id", *pad);
  }
}

// The type of the largest tensor.
std::string_view main_dtype(const GgufFile& file) {
  const auto bytes = [](const GgufTensorInfo& a, const GgufTensorInfo& b) {
    return a.bytes.size() < b.bytes.size();
  };
  const auto largest = std::max_element(file.tensors().begin(), file.tensors().end(), bytes);
  if (largest == file.tensors().end()) return "float32";
  return dtype_name(plain_dtype(largest->type).value_or(DType::f32));
}

bool has_experts(const GgufFields& fields) {
  return fields.integer("expert_count").value_or(0) > 0;
}

// Whether the architecture's own fields of the config have the key.
bool is_own_key(const GgufArchitecture& architecture, std::string_view key) {
  const auto has_key = [key](const GgufNamePair& field) { return field.theirs == key; };
  return std::ranges::any_of(architecture.fields, has_key) ||
         std::ranges::any_of(architecture.sizes, has_key);
}

constexpr std::string_view kGating = "expert_gating_func";
constexpr int64_t kSigmoid = 2;

// A model_type of config.json and its class.
struct ModelType {
  std::string_view name;
  std::string_view hf_class;
};

ModelType find_model_type(const GgufFields& fields) {
  const GgufArchitecture& architecture = fields.architecture();
  const auto is_positive = [&](std::string_view key) {
    return fields.integer(key).value_or(0) > 0;
  };
  if (!architecture.mixture_type.empty() && has_experts(fields)) {
    return {architecture.mixture_type, architecture.mixture_class};
  }
  if (!architecture.step_norms_type.empty() &&
      fields.metadata().boolean(fields.key("ssm.dt_b_c_rms")).value_or(false)) {
    return {architecture.step_norms_type, architecture.step_norms_class};
  }
  if (!architecture.sigmoid_type.empty() && fields.integer(kGating) == kSigmoid) {
    return {architecture.sigmoid_type, architecture.sigmoid_class};
  }
  if (!architecture.shared_type.empty() && is_positive("expert_shared_feed_forward_length")) {
    return {architecture.shared_type, architecture.shared_class};
  }
  if (!architecture.windowed_type.empty() && is_positive("attention.sliding_window")) {
    return {architecture.windowed_type, architecture.windowed_class};
  }
  return {architecture.model_type, architecture.hf_class};
}

void check_supported(const GgufFields& fields) {
  if (has_experts(fields) && !fields.architecture().has_mixtures) {
    fields.unsupported("expert_count", "mixtures of experts");
  }
  if (!fields.metadata().boolean(fields.key("attention.causal")).value_or(true)) {
    fields.unsupported("attention.causal", "models that look ahead");
  }
  constexpr std::string_view kRotates = "rope.scaling.finetuned";
  if (fields.architecture().may_not_rotate &&
      !fields.metadata().boolean(fields.key(kRotates)).value_or(true)) {
    fields.unsupported(kRotates, "layers that don't rotate");
  }
}

Json::Object common_fields(const GgufFile& file, const GgufFields& fields) {
  const GgufArchitecture& architecture = fields.architecture();
  const int64_t head_dim = head_dim_of(fields);
  const GgufHeads heads = heads_of(fields);
  const auto [type, hf_class] = find_model_type(fields);
  const auto has = [&](std::string_view name) { return file.find_tensor(name) != nullptr; };
  const bool has_bias = std::ranges::any_of(file.tensors(), [](const GgufTensorInfo& tensor) {
    return tensor.name.ends_with(".attn_q.bias") ||  // not every layer need be attention
           tensor.name.ends_with(".attn_qkv.bias") || tensor.name.ends_with(".attn_kv_a_mqa.bias");
  });
  Json::Object config = {
      {"model_type", Json(std::string(type))},
      {"architectures", Json(Json::Array{Json(std::string(hf_class))})},
      {"vocab_size", Json(vocabulary_size(file))},
      {"hidden_size", Json(fields.size("embedding_length"))},
      {"num_hidden_layers", Json(num_layers(fields))},
      {"num_attention_heads", Json(heads.query)},
      {"num_key_value_heads", Json(heads.key)},
      {"max_position_embeddings", Json(fields.size("context_length"))},
      {"rms_norm_eps", Json(fields.number("attention.layer_norm_rms_epsilon").value_or(1e-6))},
      {std::string(architecture.theta_field), Json(fields.number("rope.freq_base").value_or(1e4))},
      {std::string(architecture.bias_field), Json(has_bias)},
      {"mlp_bias", Json(has("blk.0.ffn_up.bias"))},
      {"tie_word_embeddings", Json(!has("output.weight"))},
      {"dtype", Json(std::string(main_dtype(file)))}};
  if (!has_attention(fields)) return config;
  if (!architecture.output_bias_field.empty()) {
    config.emplace_back(std::string(architecture.output_bias_field),
                        Json(has("blk.0.attn_output.bias")));
  }
  if (!architecture.has_latents) config.emplace_back("head_dim", head_dim);
  constexpr std::string_view kWidth = "feed_forward_length";
  if (!has_experts(fields) || fields.metadata().contains(fields.key(kWidth))) {
    config.emplace_back("intermediate_size", gguf_mlp_size(fields));
  }
  const bool may_rotate_part = !architecture.has_latents && !architecture.mixed_layers;
  if (may_rotate_part) add_rotated(fields, head_dim, config);
  return config;
}

constexpr std::string_view kGroups = "expert_group_count";

// Files have the sizes of heads (`_mla`), and those of what the cache holds; older ones have the
// first alone, under the names of the second.
int64_t latent_head_size(const GgufFields& fields, std::string_view key, int64_t otherwise) {
  const auto own = fields.integer(fmt::format("{}_mla", key));
  return own ? *own : fields.integer(key).value_or(otherwise);
}

void add_latents(const GgufFields& fields, Json::Object& config) {
  const int64_t rope = fields.size("rope.dimension_count");
  const int64_t usual = fields.size("embedding_length") / heads_of(fields).query;
  const int64_t key = latent_head_size(fields, "attention.key_length", usual);
  if (key <= rope) {
    fields.corrupt("attention.key_length", fmt::format("{}, expected more than the {} of {}", key,
                                                       rope, fields.key("rope.dimension_count")));
  }
  const auto rank = fields.integer("attention.q_lora_rank");
  config.emplace_back("q_lora_rank", rank.value_or(0) > 0 ? Json(*rank) : Json());
  config.emplace_back("kv_lora_rank", fields.size("attention.kv_lora_rank"));
  config.emplace_back("qk_nope_head_dim", key - rope);
  config.emplace_back("qk_rope_head_dim", rope);
  config.emplace_back("v_head_dim", latent_head_size(fields, "attention.value_length", usual));
  if (!has_experts(fields)) return;
  const int64_t groups = fields.integer(kGroups).value_or(1);
  config.emplace_back("n_group", groups);
  config.emplace_back("topk_group", fields.integer("expert_group_used_count").value_or(groups));
  config.emplace_back("topk_method", std::string(groups > 1 ? "group_limited_greedy" : "greedy"));
  config.emplace_back("num_nextn_predict_layers",
                      fields.integer("nextn_predict_layers").value_or(0));
}

// Layers whose file has no router are dense. Sizes that older files lack are what llama.cpp's
// loading of the hyperparameters takes.
void add_mixture(const GgufFile& file, const GgufFields& fields, Json::Object& config) {
  const int64_t used = fields.size("expert_used_count");
  const auto size_or_width = [&](std::string_view key, int64_t parts) {
    const auto size = fields.integer(key);
    return size ? *size : gguf_mlp_size(fields) / parts;
  };
  config.emplace_back(std::string(fields.architecture().experts_field),
                      fields.size("expert_count"));
  config.emplace_back("num_experts_per_tok", used);
  config.emplace_back("moe_intermediate_size", size_or_width("expert_feed_forward_length", used));
  config.emplace_back("shared_expert_intermediate_size",
                      size_or_width("expert_shared_feed_forward_length", 1));
  config.emplace_back("norm_topk_prob", fields.metadata()
                                            .boolean(fields.key("expert_weights_norm"))
                                            .value_or(fields.architecture().normalises_experts));
  Json::Array dense;
  for (int64_t layer = 0; layer < num_layers(fields); ++layer) {
    const std::string router = fmt::format("blk.{}.ffn_gate_inp.weight", layer);
    if (file.find_tensor(router) == nullptr) dense.emplace_back(layer);
  }
  config.emplace_back("mlp_only_layers", std::move(dense));
  config.emplace_back("use_qk_norm", file.find_tensor("blk.0.attn_q_norm.weight") != nullptr);
  const GgufArchitecture& architecture = fields.architecture();
  for (const auto& [key, usual] : {std::pair<std::string_view, double>{"expert_weights_scale", 1.0},
                                   {kGating, static_cast<double>(architecture.expert_gating)},
                                   {kGroups, 1.0},
                                   {"expert_shared_count", 0.0}}) {
    if (is_own_key(architecture, key)) continue;
    if (!architecture.sigmoid_type.empty() && key == kGating && fields.integer(key) == kSigmoid) {
      continue;
    }
    if (architecture.has_latents && key == kGroups) continue;
    const double found = fields.number(key).value_or(usual);
    if (found != usual && found != 0.0) fields.unsupported(key, fmt::format("{}", found));
  }
  if (const auto limit = fields.number("attention.clamp_kqv"); limit && *limit != 0.0) {
    config.emplace_back("clip_qkv", *limit);
  }
}

}  // namespace

Json gguf_config(const GgufFile& file, NormWeights norms) {
  const GgufArchitecture& architecture = find_gguf_architecture(file.metadata());
  const GgufFields fields(file.metadata(), architecture);
  check_supported(fields);
  Json::Object config = common_fields(file, fields);
  const int64_t layers = num_layers(fields);
  const int64_t head_dim = head_dim_of(fields);
  if (architecture.mixed_layers) {
    add_gguf_mixed_layers(file, fields, layers, config);
  } else {
    add_gguf_rope(file, fields,
                  {.rotated = fields.integer("rope.dimension_count").value_or(head_dim),
                   .context = fields.size("context_length")},
                  config);
  }
  add_own_fields(file, fields, config);
  if (architecture.has_latents) add_latents(fields, config);
  if (architecture.mixers != GgufMixers::attention) {
    add_gguf_mixers(file, fields, layers, config);
  } else if (!architecture.has_latents) {
    add_gguf_windows(fields, layers, config);
  }
  if (has_experts(fields)) add_mixture(file, fields, config);
  add_special_ids(file.metadata(), config);
  if (architecture.norms_plus_one && norms == NormWeights::as_in_file) {
    config.emplace_back(std::string(kNormWeightOffsetField), 0.0);
  }
  if (architecture.multiplied_weights) {
    config.emplace_back(std::string(kMultipliedWeightsField), true);
  }
  if (!architecture.four_norms) {
    if (!architecture.has_latents && !is_own_key(architecture, "attention.scale"))
      check_scale(fields, head_dim);
    config.emplace_back("hidden_act", std::string(architecture.activation));
    return Json(std::move(config));
  }
  add_four_norm_fields(fields, layers, head_dim, config);
  return Json(std::move(config));
}

Json gguf_generation_config(const GgufMetadata& metadata) {
  Json::Object config;
  Json::Array ends;
  for (const std::string_view name : {"eos", "eot", "eom"}) {
    const auto id = gguf_token_id(metadata, name);
    const auto is_it = [&](const Json& known) { return known.integer() == *id; };
    if (id && std::none_of(ends.begin(), ends.end(), is_it)) ends.emplace_back(*id);
  }
  if (!ends.empty()) config.emplace_back("eos_token_id", std::move(ends));
  if (const auto bos = gguf_token_id(metadata, "bos")) config.emplace_back("bos_token_id", *bos);
  for (const GenerationOption& option : kGenerationOptions) {
    const auto& [ours, theirs] = option.file_keys;
    if (theirs.empty()) continue;
    if (kind_of(option) == GenerationKind::integer) {
      if (const auto value = metadata.integer(theirs)) config.emplace_back(ours, *value);
    } else if (const auto value = metadata.number(theirs); value && std::isfinite(*value)) {
      config.emplace_back(ours, shortest_decimal(*value));
    }
  }
  return Json(std::move(config));
}

GgufHeads gguf_heads(const GgufFile& file) {
  return heads_of(GgufFields(file.metadata(), find_gguf_architecture(file.metadata())));
}

int64_t num_gguf_layers(const GgufFile& file) {
  return num_layers(GgufFields(file.metadata(), find_gguf_architecture(file.metadata())));
}

std::optional<std::string> gguf_pooling(const GgufMetadata& metadata) {
  constexpr std::array<std::string_view, 5> kModes = {"", "mean", "cls", "lasttoken", ""};
  // A file of a tokenizer alone needs no architecture, and no supported one.
  const auto architecture = metadata.string("general.architecture");
  if (!architecture) return std::nullopt;
  const std::string key = fmt::format("{}.pooling_type", *architecture);
  const auto type = metadata.integer(key);
  if (!type) return std::nullopt;
  if (*type < 0 || *type >= std::ssize(kModes)) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: {}: {} isn't supported; 0 to 4 are", metadata.file(), key, *type));
  }
  const std::string_view mode = kModes[static_cast<size_t>(*type)];
  return mode.empty() ? std::nullopt : std::optional<std::string>(mode);
}

}  // namespace paceline
