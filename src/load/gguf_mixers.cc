#include "load/gguf_mixers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "load/gguf_mixed_layers.h"

namespace paceline {
namespace {

constexpr std::string_view kKeyHeads = "attention.head_count_kv";
constexpr std::string_view kMlpColumns = "feed_forward_length";
constexpr std::string_view kSsmInner = "ssm.inner_size";
constexpr std::string_view kSsmHeads = "ssm.time_step_rank";
constexpr std::string_view kSsmGroups = "ssm.group_count";

// A list with a number for each layer; nothing when the key has none.
std::optional<std::vector<int64_t>> layer_list(const GgufFields& fields, std::string_view key,
                                               int64_t layers) {
  if (!fields.metadata().is_array(fields.key(key))) return std::nullopt;
  auto listed = fields.metadata().integers(fields.key(key));
  if (!listed || std::ssize(*listed) < layers) {
    fields.corrupt(
        key, fmt::format("{} numbers for {} layers", listed ? listed->size() : size_t{0}, layers));
  }
  return listed;
}

// Which layers aren't attention.
std::vector<bool> recurrent_layers(const GgufFields& fields, int64_t layers) {
  const bool has_delta_nets = fields.architecture().mixers == GgufMixers::delta_nets;
  const std::string_view key = has_delta_nets ? "attention.recurrent_layers" : kKeyHeads;
  std::vector<bool> recurrent;
  if (const auto listed = layer_list(fields, key, layers)) {
    for (int64_t i = 0; i < layers; ++i) {
      recurrent.push_back(((*listed)[static_cast<size_t>(i)] != 0) == has_delta_nets);
    }
    return recurrent;
  }
  constexpr int64_t kUsualInterval = 4;
  const int64_t interval = fields.integer("full_attention_interval").value_or(kUsualInterval);
  for (int64_t i = 0; i < layers; ++i) {
    recurrent.push_back(has_delta_nets && (interval < 1 || (i + 1) % interval != 0));
  }
  return recurrent;
}

bool has_tensor(const GgufFile& file, std::string_view ending) {
  return std::ranges::any_of(file.tensors(), [ending](const GgufTensorInfo& tensor) {
    return tensor.name.ends_with(ending);
  });
}

void add_delta_net_fields(const GgufFields& fields, Json::Object& config) {
  const GgufDeltaNet sizes = gguf_delta_net(fields);
  config.emplace_back("linear_num_key_heads", sizes.key_heads);
  config.emplace_back("linear_num_value_heads", sizes.value_heads);
  config.emplace_back("linear_key_head_dim", sizes.key_dim);
  config.emplace_back("linear_value_head_dim", sizes.value_dim);
  config.emplace_back("linear_conv_kernel_dim", fields.size("ssm.conv_kernel"));
}

// The number of the layers that have one.
int64_t only_number(const GgufFields& fields, std::string_view key) {
  const auto listed = layer_list(fields, key, 0);
  if (!listed) return fields.layer_size(key);
  int64_t only = 0;
  for (const int64_t number : *listed) {
    if (only != 0 && number != 0 && number != only) {
      fields.unsupported(key, fmt::format("layers that differ ({} and {})", only, number));
    }
    only = std::max(only, number);
  }
  constexpr int64_t kMost = int64_t{1} << 24;
  if (only < 1 || only > kMost) {
    fields.corrupt(key, fmt::format("{} in every layer, expected 1 to {} in some", only, kMost));
  }
  return only;
}

// The inner columns of Mamba 2 are so many for each head and each of `hidden` columns.
void check_inner(const GgufFields& fields, int64_t hidden) {
  const int64_t inner = fields.size(kSsmInner), heads = fields.size(kSsmHeads);
  if (inner % heads == 0 && inner % hidden == 0) return;
  std::string expected = fmt::format("the {} heads of {}", heads, fields.key(kSsmHeads));
  if (hidden != 1) expected += fmt::format(" and of {}", fields.key("embedding_length"));
  fields.corrupt(kSsmInner, fmt::format("{}, expected a multiple of {}", inner, expected));
}

// The inner columns of Mamba 1 are so many for each of `hidden` columns.
void check_expansion(const GgufFields& fields, int64_t hidden) {
  const int64_t inner = fields.size(kSsmInner);
  if (inner % hidden == 0) return;
  fields.corrupt(kSsmInner, fmt::format("{}, expected a multiple of the {} of {}", inner, hidden,
                                        fields.key("embedding_length")));
}

void add_mamba_sizes(const GgufFile& file, const GgufFields& fields, Json::Object& config) {
  const int64_t heads = fields.size(kSsmHeads);
  config.emplace_back("mamba_n_heads", heads);
  config.emplace_back("mamba_d_head", fields.size(kSsmInner) / heads);
  config.emplace_back("mamba_n_groups", fields.size(kSsmGroups));
  config.emplace_back("mamba_d_state", fields.size("ssm.state_size"));
  config.emplace_back("mamba_d_conv", fields.size("ssm.conv_kernel"));
  config.emplace_back("mamba_conv_bias", has_tensor(file, ".ssm_conv1d.bias"));
  config.emplace_back("mamba_proj_bias", has_tensor(file, ".ssm_in.bias"));
}

// Layers of one branch: attention where there are heads, else an MLP or a mixture where there are
// columns of one.
void add_layers_alone(const GgufFile& file, const GgufFields& fields, int64_t layers,
                      Json::Object& config) {
  const auto heads = layer_list(fields, kKeyHeads, layers);
  const auto columns = layer_list(fields, kMlpColumns, layers);
  if (!heads || !columns) {
    fields.corrupt(heads ? kMlpColumns : kKeyHeads, "expected a list with a number for each layer");
  }
  Json::Array types;
  for (size_t i = 0; i < static_cast<size_t>(layers); ++i) {
    const std::string_view mlp = fields.architecture().has_mixtures ? "moe" : "mlp";
    const bool has_heads = (*heads)[i] != 0, has_columns = (*columns)[i] != 0;
    if (has_heads && has_columns) {
      fields.unsupported(kMlpColumns, fmt::format("layer {}: MLPs behind attention", i));
    }
    types.emplace_back(std::string(has_heads     ? "full_attention"
                                   : has_columns ? mlp
                                                 : "linear_attention"));
  }
  config.emplace_back("layers_block_type", std::move(types));
  const int64_t mamba_heads = fields.size(kSsmHeads), inner = fields.size(kSsmInner);
  check_inner(fields, 1);
  config.emplace_back("mamba_num_heads", mamba_heads);
  config.emplace_back("mamba_head_dim", inner / mamba_heads);
  config.emplace_back("n_groups", fields.size(kSsmGroups));
  config.emplace_back("ssm_state_size", fields.size("ssm.state_size"));
  config.emplace_back("conv_kernel", fields.size("ssm.conv_kernel"));
  config.emplace_back("use_conv_bias", has_tensor(file, ".ssm_conv1d.bias"));
  config.emplace_back("use_bias", has_tensor(file, ".ssm_in.bias"));
  const auto of_rms = fields.number("attention.layer_norm_rms_epsilon");
  const auto eps = of_rms ? of_rms : fields.number("attention.layer_norm_epsilon");
  if (eps) config.emplace_back("layer_norm_epsilon", *eps);
}

// Mamba 2 alone, whose fields have names of their own.
void add_mamba_only_fields(const GgufFile& file, const GgufFields& fields, Json::Object& config) {
  const int64_t inner = fields.size(kSsmInner), heads = fields.size(kSsmHeads);
  const int64_t hidden = fields.size("embedding_length");
  check_inner(fields, hidden);
  config.emplace_back("num_heads", heads);
  config.emplace_back("head_dim", inner / heads);
  config.emplace_back("n_groups", fields.size(kSsmGroups));
  config.emplace_back("state_size", fields.size("ssm.state_size"));
  config.emplace_back("conv_kernel", fields.size("ssm.conv_kernel"));
  config.emplace_back("expand", inner / hidden);
  config.emplace_back("use_conv_bias", has_tensor(file, ".ssm_conv1d.bias"));
  config.emplace_back("use_bias", has_tensor(file, ".ssm_in.bias"));
  if (const auto eps = fields.number("attention.layer_norm_rms_epsilon")) {
    config.emplace_back("layer_norm_epsilon", *eps);
  }
}

// The files don't have the place of the norm's gate; llama.cpp applies the gate first.
void add_mamba_beside_fields(const GgufFile& file, const GgufFields& fields, Json::Object& config) {
  check_inner(fields, 1);
  config.emplace_back("mamba_d_ssm", fields.size(kSsmInner));
  config.emplace_back("projectors_bias", has_tensor(file, ".ssm_out.bias"));
  config.emplace_back("mamba_rms_norm", has_tensor(file, ".ssm_norm.weight"));
  config.emplace_back("mamba_norm_before_gate", false);
  add_mamba_sizes(file, fields, config);
}

void add_mamba_fields(const GgufFile& file, const GgufFields& fields, Json::Object& config) {
  const int64_t hidden = fields.size("embedding_length");
  check_inner(fields, hidden);
  add_mamba_sizes(file, fields, config);
  config.emplace_back("mamba_expand", fields.size(kSsmInner) / hidden);
  const bool rotates =
      fields.metadata().boolean(fields.key("rope.scaling.finetuned")).value_or(true);
  config.emplace_back("position_embedding_type", rotates ? Json(std::string("rope")) : Json());
  if (fields.integer("expert_count").value_or(0) > 0) return;
  config.emplace_back("num_local_experts", int64_t{0});
  if (fields.integer("expert_shared_feed_forward_length").value_or(0) > 0) return;
  config.emplace_back("shared_intermediate_size", fields.layer_size("feed_forward_length"));
}

void add_mamba1_only_fields(const GgufFile& file, const GgufFields& fields, Json::Object& config) {
  const int64_t hidden = fields.size("embedding_length");
  check_expansion(fields, hidden);
  config.emplace_back("expand", fields.size(kSsmInner) / hidden);
  config.emplace_back("state_size", fields.size("ssm.state_size"));
  config.emplace_back("conv_kernel", fields.size("ssm.conv_kernel"));
  config.emplace_back("time_step_rank", fields.size(kSsmHeads));
  config.emplace_back("use_conv_bias", has_tensor(file, ".ssm_conv1d.bias"));
  config.emplace_back("use_bias", has_tensor(file, ".ssm_in.bias"));
  if (const auto eps = fields.number("attention.layer_norm_rms_epsilon")) {
    config.emplace_back("layer_norm_epsilon", *eps);
  }
}

// Adds the period and the offset of layers of a kind.
void add_layer_pattern(const GgufFields& fields, std::string_view key, const std::string& name,
                       const std::vector<bool>& layers, Json::Object& config) {
  const auto first = std::ranges::find(layers, true);
  const auto second = first == layers.end() ? first : std::find(first + 1, layers.end(), true);
  const int64_t offset = first - layers.begin();
  const int64_t period =
      second == layers.end() ? std::max(offset + 1, std::ssize(layers)) : second - first;
  for (int64_t i = 0; i < std::ssize(layers); ++i) {
    if (layers[static_cast<size_t>(i)] == (i % period == offset)) continue;
    fields.unsupported(key, fmt::format("layers without a period (layer {})", i));
  }
  config.emplace_back(name + "_layer_period", period);
  config.emplace_back(name + "_layer_offset", offset);
}

void add_mamba1_fields(const GgufFile& file, const GgufFields& fields, int64_t layers,
                       Json::Object& config) {
  const int64_t hidden = fields.size("embedding_length");
  check_expansion(fields, hidden);
  config.emplace_back("mamba_expand", fields.size(kSsmInner) / hidden);
  config.emplace_back("mamba_d_state", fields.size("ssm.state_size"));
  config.emplace_back("mamba_d_conv", fields.size("ssm.conv_kernel"));
  config.emplace_back("mamba_dt_rank", fields.size(kSsmHeads));
  config.emplace_back("mamba_conv_bias", has_tensor(file, ".ssm_conv1d.bias"));
  config.emplace_back("mamba_proj_bias", has_tensor(file, ".ssm_in.bias"));
  std::vector<bool> attention = recurrent_layers(fields, layers);
  attention.flip();
  add_layer_pattern(fields, kKeyHeads, "attn", attention, config);
  if (fields.integer("expert_count").value_or(0) < 1) {
    config.emplace_back("num_experts", int64_t{1});
    config.emplace_back("num_experts_per_tok", int64_t{1});
  }
  std::vector<bool> mixtures;
  for (int64_t i = 0; i < layers; ++i) {
    mixtures.push_back(file.find_tensor(fmt::format("blk.{}.ffn_gate_inp.weight", i)) != nullptr);
  }
  add_layer_pattern(fields, "expert_count", "expert", mixtures, config);
}

// The files' sizes of the MLPs are those of their matrices.
void add_convolution_fields(const GgufFile& file, const GgufFields& fields, Json::Object& config) {
  config.emplace_back("block_auto_adjust_ff_dim", false);
  config.emplace_back("conv_bias", has_tensor(file, ".shortconv.conv.bias"));
  if (!fields.architecture().has_mixtures) return;
  config.emplace_back("use_expert_bias", has_tensor(file, ".exp_probs_b.bias"));
  config.emplace_back("num_dense_layers", fields.integer("leading_dense_block_count").value_or(0));
}

}  // namespace

int64_t gguf_key_heads(const GgufFields& fields) {
  if (fields.architecture().mixed_layers) return gguf_windowed_key_heads(fields);
  const GgufMixers mixers = fields.architecture().mixers;
  const bool is_uniform = mixers == GgufMixers::attention || mixers == GgufMixers::delta_nets ||
                          mixers == GgufMixers::beside;
  return is_uniform ? fields.layer_size(kKeyHeads) : only_number(fields, kKeyHeads);
}

int64_t gguf_mlp_size(const GgufFields& fields) {
  if (fields.architecture().mixed_layers) return gguf_first_mlp_size(fields);
  const bool is_uniform = fields.architecture().mixers != GgufMixers::alone;
  return is_uniform ? fields.layer_size(kMlpColumns) : only_number(fields, kMlpColumns);
}

void add_gguf_mixers(const GgufFile& file, const GgufFields& fields, int64_t layers,
                     Json::Object& config) {
  const GgufMixers mixers = fields.architecture().mixers;
  if (mixers == GgufMixers::alone) return add_layers_alone(file, fields, layers, config);
  if (mixers == GgufMixers::mamba1_only) return add_mamba1_only_fields(file, fields, config);
  if (mixers == GgufMixers::mamba1) return add_mamba1_fields(file, fields, layers, config);
  if (mixers == GgufMixers::mamba2_only) return add_mamba_only_fields(file, fields, config);
  if (mixers == GgufMixers::beside) return add_mamba_beside_fields(file, fields, config);
  Json::Array types;
  for (const bool is_recurrent : recurrent_layers(fields, layers)) {
    const std::string_view other = mixers == GgufMixers::convolutions ? "conv" : "linear_attention";
    types.emplace_back(std::string(is_recurrent ? other : "full_attention"));
  }
  config.emplace_back("layer_types", std::move(types));
  if (fields.integer("attention.sliding_window").value_or(0) > 0) {
    fields.unsupported("attention.sliding_window", "windows beside layers with states");
  }
  if (mixers == GgufMixers::delta_nets) return add_delta_net_fields(fields, config);
  if (mixers == GgufMixers::mamba2) return add_mamba_fields(file, fields, config);
  if (mixers == GgufMixers::channel_deltas) {  // its layers have as many heads as attention
    config.emplace_back("linear_num_heads", fields.layer_size("attention.head_count"));
    return;
  }
  add_convolution_fields(file, fields, config);
}

GgufDeltaNet gguf_delta_net(const GgufFields& fields) {
  const int64_t inner = fields.size(kSsmInner), heads = fields.size(kSsmHeads);
  const int64_t groups = fields.size(kSsmGroups);
  if (inner % heads != 0) {
    fields.corrupt(kSsmInner, fmt::format("{}, expected a multiple of the {} heads of {}", inner,
                                          heads, fields.key(kSsmHeads)));
  }
  if (heads % groups != 0) {
    fields.corrupt(kSsmHeads, fmt::format("{}, expected a multiple of the {} key heads of {}",
                                          heads, groups, fields.key(kSsmGroups)));
  }
  return {.key_heads = groups,
          .value_heads = heads,
          .key_dim = fields.size("ssm.state_size"),
          .value_dim = inner / heads};
}

void set_state_shape(GgufMixers mixers, GgufTensorName& name) {
  const std::string& text = name.name;
  name.is_kernel = text.ends_with("conv1d.weight") || text.ends_with(".conv.conv.weight");
  if (mixers == GgufMixers::channel_deltas) {
    name.is_vector = text.ends_with(kGgufDecayRates);
    return;
  }
  if (mixers == GgufMixers::mamba1 || mixers == GgufMixers::mamba1_only) return;
  if (text.find(".mamba.") == text.npos && text.find(".mixer.") == text.npos) return;
  name.is_vector =
      text.ends_with(kGgufDecayRates) || text.ends_with(".D") || text.ends_with(".norm.weight");
}

void set_delta_net_order(const GgufDeltaNet& sizes, GgufTensorName& name) {
  const auto is = [&](std::string_view part) { return name.name.find(part) != name.name.npos; };
  if (!is(".linear_attn.")) return;
  GgufHeadGroups groups{.groups = sizes.key_heads, .heads = sizes.value_heads};
  if (!groups.is_reordered() || is(".linear_attn.norm.")) return;
  const bool is_single = is(".in_proj_a.") || is(".in_proj_b.") || is(".A") || is(".dt_bias");
  groups.size = is_single ? 1 : sizes.value_dim;
  if (is(".in_proj_qkv.") || is(".conv1d.")) groups.first = 2 * sizes.key_heads * sizes.key_dim;
  (is(".out_proj.") ? name.column_groups : name.row_groups) = groups;
}

}  // namespace paceline
