#include "load/model_adapter_base.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "adapters/expert_names.h"
#include "base/error.h"
#include "load/gguf_mixers.h"
#include "load/loaded_model.h"
#include "load/stored_model.h"
#include "models/block_projections.h"
#include "models/gguf_architecture.h"
#include "weights/weight_reader.h"

namespace paceline {
namespace {

constexpr std::string_view kHeadModule = "lm_head";
constexpr std::string_view kQueryPart = ".q_proj";
constexpr std::string_view kKeyPart = ".k_proj";

// transformers' and mlx-lm's classes of multimodal models hold the text model inside.
void set_prefixes(AdapterBase& base, std::string_view layers) {
  std::string_view list = "h.";
  for (const std::string_view other : {"layers.", "blocks."}) {
    if (layers.ends_with(other)) list = other;
  }
  const std::string_view prefix =
      layers.substr(0, layers.size() - std::min(layers.size(), list.size()));
  if (prefix == "transformer." || prefix == "gpt_neox." || prefix == "biogpt." ||
      prefix == "model.decoder.") {
    base.peft_prefixes = {.layers = std::string(prefix), .layer_list = std::string(list)};
    base.mlx_prefixes = base.peft_prefixes;
  } else if (prefix == "model.language_model." || prefix == "language_model.model.") {
    base.peft_prefixes = {.layers = "model.language_model."};
    base.mlx_prefixes = {.layers = "language_model.model.", .head = "language_model."};
  } else if (prefix == "model.text_model.") {
    base.peft_prefixes = {.layers = std::string(prefix)};
    base.mlx_prefixes = base.peft_prefixes;
  }
}

void set_expert_names(AdapterBase& base, std::string_view family) {
  constexpr std::string_view kSparse = "block_sparse_moe.experts";
  if (family == "gpt_oss") {
    base.expert_names.stacked_in_mlx = "mlp.experts";
    base.expert_names.alternates = true;
  }
  if (family.starts_with("gemma4")) {
    base.expert_names.stacked = "experts";
    base.expert_names.router = "router.proj";
  }
  const bool is_granite = family.starts_with("granitemoe"), is_mixtral = family == "mixtral";
  if (is_granite || is_mixtral) base.expert_names.stacked_in_mlx = "block_sparse_moe.switch_mlp";
  if (is_granite) {
    base.expert_names.stacked = kSparse;
    base.expert_names.router = "block_sparse_moe.router";
    base.expert_names.router_in_mlx = "block_sparse_moe.router.layer";
  }
  if (!is_mixtral) return;
  base.expert_names.router_in_mlx = "block_sparse_moe.gate";
  base.expert_names.single = kSparse;
  base.expert_names.gate = "w1";
  base.expert_names.up = "w3";
  base.expert_names.down = "w2";
}

// Whether models of the family are written as files of the architecture.
bool is_of_family(const GgufArchitecture& architecture, std::string_view family) {
  return family.starts_with(architecture.name) || family == architecture.model_type ||
         fmt::format("{}_text", family) == architecture.model_type ||
         family == architecture.windowed_type || family == architecture.mixture_type;
}

// "layers.3.self_attn.q_proj" of "blk.3.attn_q.weight".
std::optional<std::string> gguf_module_name(const GgufArchitecture& architecture,
                                            std::string_view tensor) {
  constexpr std::string_view kPrefix = "model.";
  constexpr std::string_view kWeight = ".weight";
  auto name = checkpoint_name(architecture, tensor);
  if (!name || !name->ends_with(kWeight)) return std::nullopt;
  name->resize(name->size() - kWeight.size());
  if (name->starts_with(kPrefix)) name->erase(0, kPrefix.size());
  return name;
}

// Throws Error when adapters in files of the architecture don't fit a base of the family.
void check_architecture(const GgufArchitecture& architecture, std::string_view family,
                        bool multiplied_base, std::string_view file) {
  if (!is_of_family(architecture, family)) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: general.architecture is \"{}\", but the base model is \"{}\"",
                            file, architecture.name, family));
  }
  if (architecture.multiplied_weights && !multiplied_base) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: adapters in GGUF of {} have the model's multipliers; use the "
                            "model's GGUF file, or the adapter in PEFT's format",
                            file, family));
  }
}

std::optional<GgufDeltaNet> delta_net_of(const DecoderConfig& config) {
  if (!config.delta_net) return std::nullopt;
  return GgufDeltaNet{.key_heads = config.delta_net->key_heads,
                      .value_heads = config.delta_net->value_heads,
                      .key_dim = config.delta_net->key_dim,
                      .value_dim = config.delta_net->value_dim};
}

}  // namespace

AdapterBase adapter_base_of(const DecoderConfig& config, std::string_view layers) {
  AdapterBase base;
  base.num_layers = config.num_stored_layers();
  for (int64_t layer = 0; layer < config.num_layers(); ++layer) {
    for (const auto& projections :
         {block_projections(config, layer), shared_projections(config, layer),
          router_projections(config, layer)}) {
      for (const BlockProjection& part : projections) {
        base.modules.push_back(fmt::format("layers.{}.{}", config.stored_layer(layer), part.part));
      }
    }
  }
  base.modules.emplace_back(kHeadModule);
  const MatrixSize head{config.vocab_size, config.hidden_size};
  base.size_of = [config, head](std::string_view module) -> std::optional<MatrixSize> {
    if (module == kHeadModule) return head;
    const auto split = split_layer_module(module);
    if (!split || split->layer >= config.num_stored_layers()) return std::nullopt;
    const auto found = find_stored_projection(config, split->layer, split->part);
    if (!found) return std::nullopt;
    return MatrixSize{.out = found->projection.out_features, .in = found->projection.in_features};
  };
  set_prefixes(base, layers);
  set_expert_names(base, config.family);
  if (config.multiplied_weights) {
    base.needs_gguf =
        "the base model's GGUF file has its multipliers in the weights, which adapters in this "
        "format lack; use the model's safetensors, or the adapter in GGUF";
  }
  base.gguf_module = [size_of = base.size_of, family = config.family, heads = config.num_heads,
                      kv_heads = config.num_kv_heads, delta_net = delta_net_of(config),
                      is_multiplied = config.multiplied_weights](
                         const GgufMetadata& metadata,
                         std::string_view tensor) -> std::optional<GgufModule> {
    const GgufArchitecture& architecture = find_gguf_architecture(metadata);
    check_architecture(architecture, family, is_multiplied, metadata.file());
    auto name = gguf_module_name(architecture, tensor);
    if (!name) return std::nullopt;
    GgufModule module{.module = std::move(*name)};
    module.is_stack = !size_of(module.module) && size_of(with_expert(module.module, 0));
    if (delta_net && architecture.value_heads_in_turns) {
      GgufTensorName order{.name = "model." + module.module + ".", .file_name = {}};
      set_delta_net_order(*delta_net, order);
      module.row_groups = order.row_groups;
      module.column_groups = order.column_groups;
    }
    if (!architecture.interleaved_rotary) return module;
    if (module.module.ends_with(kQueryPart)) module.interleaved_heads = heads;
    if (module.module.ends_with(kKeyPart)) module.interleaved_heads = kv_heads;
    return module;
  };
  return base;
}

AdapterBase read_adapter_base(const ModelSource& source) {
  Memory memory;
  const auto weights = source.open_weights(memory);
  const WeightReader names(*weights);
  const bool is_other = names.layout() != nullptr && !names.layout()->layers_in_class.empty();
  return adapter_base_of(
      read_model_config(source, LoadFormat::files),
      is_other ? std::string(names.layout()->layers_in_class) : names.file_name("layers."));
}

}  // namespace paceline
