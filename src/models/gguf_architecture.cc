#include "models/gguf_architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/error.h"
#include "models/gguf_architecture_groups.h"
#include "models/refused_kinds.h"

namespace paceline {
namespace {

using NamePair = std::pair<std::string_view, std::string_view>;

constexpr std::array<NamePair, 3> kOutsideLayers = {
    NamePair{"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
};
constexpr std::array<NamePair, 24> kInLayers = {
    NamePair{"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
    {"ffn_gate_inp", "mlp.gate"},
    {"ffn_gate_exps", "mlp.experts.gate_proj"},
    {"ffn_up_exps", "mlp.experts.up_proj"},
    {"ffn_down_exps", "mlp.experts.down_proj"},
    {"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
    {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
    {"ffn_down_shexp", "mlp.shared_expert.down_proj"},
    {"nextn.eh_proj", "eh_proj"},
    {"nextn.embed_tokens", "embed_tokens"},
    {"nextn.enorm", "enorm"},
    {"nextn.hnorm", "hnorm"},
    {"nextn.shared_head_head", "shared_head.head"},
    {"nextn.shared_head_norm", "shared_head.norm"},
};
// With the kind, which checkpoints don't have here.
constexpr std::array<NamePair, 2> kWholeInLayers = {
    NamePair{"attn_sinks.weight", "self_attn.sinks"},
    {"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
};
constexpr std::array<NamePair, 1> kTwoNorms = {NamePair{"ffn_norm", "post_attention_layernorm"}};
constexpr std::array<NamePair, 3> kFourNorms = {
    NamePair{"post_attention_norm", "post_attention_layernorm"},
    {"ffn_norm", "pre_feedforward_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
};

std::vector<std::span<const GgufArchitecture>> all_groups() {
  return {gguf_dense_architectures(), gguf_mixture_architectures(), gguf_state_architectures(),
          gguf_early_architectures()};
}

std::string_view find_name(std::span<const NamePair> names, std::string_view gguf_name) {
  for (const auto& [theirs, ours] : names) {
    if (theirs == gguf_name) return ours;
  }
  return {};
}

std::string_view find_in_layer(const GgufArchitecture& architecture, std::string_view part) {
  for (const GgufNamePair& own : architecture.tensors) {
    if (own.theirs == part) return own.ours;
  }
  const std::string_view name = find_name(kInLayers, part);
  if (!name.empty()) return name;
  return architecture.four_norms ? find_name(kFourNorms, part) : find_name(kTwoNorms, part);
}

}  // namespace

const GgufArchitecture& find_gguf_architecture(const GgufMetadata& metadata) {
  constexpr std::string_view kKey = "general.architecture";
  const auto name = metadata.string(kKey);
  if (!name) {
    throw Error(ErrorCode::corrupt, fmt::format("{}: {} is missing", metadata.file(), kKey));
  }
  std::string known;
  for (const auto group : all_groups()) {
    for (const GgufArchitecture& architecture : group) {
      if (architecture.name == *name) return architecture;
      known += fmt::format("{}{}", known.empty() ? "" : ", ", architecture.name);
    }
  }
  throw Error(ErrorCode::unsupported, fmt::format("{}: {}: {}", metadata.file(), kKey,
                                                  unsupported_words(name->substr(0, 64), known)));
}

const GgufArchitecture* find_gguf_architecture(std::string_view model_type, bool has_mixture) {
  const auto holds = [&](const GgufArchitecture& one) {
    const std::string_view types[] = {one.model_type,      one.windowed_type, one.mixture_type,
                                      one.step_norms_type, one.sigmoid_type,  one.shared_type};
    return (one.has_mixtures || !has_mixture) &&
           std::ranges::find(types, model_type) != std::end(types);
  };
  for (const auto group : all_groups()) {
    const auto found = std::ranges::find_if(group, holds);
    if (found != group.end()) return &*found;
  }
  return nullptr;
}

std::vector<std::string> gguf_tensor_names(const GgufArchitecture& architecture,
                                           int64_t num_layers) {
  std::vector<std::string> in_layer;  // with their kinds
  const auto add_kinds = [&](std::string_view stem) {
    for (const std::string_view kind : {"weight", "bias"}) {
      in_layer.push_back(fmt::format("{}.{}", stem, kind));
    }
  };
  for (const GgufNamePair& own : architecture.whole_tensors) in_layer.emplace_back(own.theirs);
  for (const GgufNamePair& own : architecture.tensors) add_kinds(own.theirs);
  for (const NamePair& name : kInLayers) add_kinds(name.first);
  for (const NamePair& name : kWholeInLayers) in_layer.emplace_back(name.first);
  const std::span<const NamePair> norms =
      architecture.four_norms ? std::span<const NamePair>(kFourNorms) : kTwoNorms;
  for (const NamePair& name : norms) add_kinds(name.first);
  std::vector<std::string> names;
  for (const NamePair& name : kOutsideLayers) {
    for (const std::string_view kind : {"weight", "bias"}) {
      names.push_back(fmt::format("{}.{}", name.first, kind));
    }
  }
  for (const GgufNamePair& own : architecture.whole_tensors) names.emplace_back(own.theirs);
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    for (const std::string& name : in_layer) names.push_back(fmt::format("blk.{}.{}", layer, name));
  }
  return names;
}

std::string transformers_name(const GgufArchitecture& architecture, std::string_view name) {
  std::string renamed(name);
  if (name.ends_with(kGgufDecayRates)) return renamed + "_log";
  const auto has = [name](std::string_view part) { return name.find(part) != name.npos; };
  if (!has(".mlp.gate.") && !has(".mlp.experts.") && !has(".feed_forward.experts.")) return renamed;
  for (const GgufNamePair& part : architecture.mixture_names) {
    const size_t at = renamed.find(part.theirs);
    if (at != renamed.npos) renamed.replace(at, part.theirs.size(), part.ours);
  }
  return renamed;
}

std::optional<std::string> checkpoint_name(const GgufArchitecture& architecture,
                                           std::string_view gguf_name) {
  constexpr std::string_view kLayer = "blk.";
  std::string_view layer, whole = gguf_name;  // "3" and "attn_q.weight"
  if (whole.starts_with(kLayer)) {
    const size_t end = std::min(whole.find('.', kLayer.size()), whole.size());
    layer = whole.substr(kLayer.size(), end - kLayer.size());
    whole.remove_prefix(std::min(end + 1, whole.size()));
  }
  const std::string prefix = layer.empty() ? "model." : fmt::format("model.layers.{}.", layer);
  for (const GgufNamePair& own : architecture.whole_tensors) {
    if (own.theirs == whole) return fmt::format("{}{}", prefix, own.ours);
  }
  const size_t dot = whole.rfind('.');
  if (dot == whole.npos) return std::string(gguf_name);
  const std::string_view kind = whole.substr(dot + 1);  // "weight", "bias"
  const std::string_view stem = whole.substr(0, dot);
  if (stem == "rope_freqs" || stem == "rope_factors_long" || stem == "rope_factors_short" ||
      stem == "attn_rot_embd")
    return std::nullopt;
  if (layer.empty()) {
    const std::string_view name = find_name(kOutsideLayers, stem);
    return name.empty() ? std::string(gguf_name) : fmt::format("{}.{}", name, kind);
  }
  if (const std::string_view name = find_name(kWholeInLayers, whole); !name.empty()) {
    return fmt::format("{}{}", prefix, name);
  }
  const std::string_view name = find_in_layer(architecture, stem);
  if (name.empty()) return std::string(gguf_name);
  return fmt::format("{}{}.{}", prefix, name, kind);
}

}  // namespace paceline
