#include "load/model_adapter_base.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "base/error.h"
#include "load/loaded_model.h"
#include "models/block_projections.h"
#include "models/gguf_architecture.h"
#include "weights/weight_reader.h"

namespace paceline {
namespace {

using PartSizes = std::map<std::string, MatrixSize, std::less<>>;

constexpr std::string_view kHeadModule = "lm_head";
constexpr std::string_view kQueryPart = ".self_attn.q_proj";
constexpr std::string_view kKeyPart = ".self_attn.k_proj";

PartSizes part_sizes(const DecoderConfig& config) {
  PartSizes sizes;
  for (int64_t layer = 0; layer < config.num_layers(); ++layer) {
    for (const BlockProjection& part : block_projections(config, layer)) {
      sizes[part.part] = {.out = part.out_features, .in = part.in_features};
    }
  }
  return sizes;
}

// transformers' and mlx-lm's classes of multimodal models hold the text model inside.
void set_prefixes(AdapterBase& base, std::string_view prefix) {
  if (prefix == "model.language_model." || prefix == "language_model.model.") {
    base.peft_prefixes = {.layers = "model.language_model."};
    base.mlx_prefixes = {.layers = "language_model.model.", .head = "language_model."};
  } else if (prefix == "model.text_model.") {
    base.peft_prefixes = {.layers = std::string(prefix)};
    base.mlx_prefixes = base.peft_prefixes;
  }
}

// Whether models of the family are written as files of the architecture.
bool is_of_family(const GgufArchitecture& architecture, std::string_view family) {
  return family.starts_with(architecture.name) || family == architecture.model_type ||
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

}  // namespace

AdapterBase adapter_base_of(const DecoderConfig& config, std::string_view prefix) {
  AdapterBase base;
  const PartSizes sizes = part_sizes(config);
  base.num_layers = config.num_layers();
  for (int64_t layer = 0; layer < base.num_layers; ++layer) {
    const bool is_mixture = config.layers[static_cast<size_t>(layer)].is_mixture;
    for (const auto& [part, size] : sizes) {
      if (is_mixture && part.starts_with("mlp.")) continue;
      base.modules.push_back(fmt::format("layers.{}.{}", layer, part));
    }
  }
  base.modules.emplace_back(kHeadModule);
  const MatrixSize head{config.vocab_size, config.hidden_size};
  base.size_of = [sizes, head, num_layers = base.num_layers](
                     std::string_view module) -> std::optional<MatrixSize> {
    if (module == kHeadModule) return head;
    const auto split = split_layer_module(module);
    if (!split || split->layer >= num_layers) return std::nullopt;
    const auto at = sizes.find(split->part);
    if (at == sizes.end()) return std::nullopt;
    return at->second;
  };
  set_prefixes(base, prefix);
  base.gguf_module =
      [family = config.family, heads = config.num_heads, kv_heads = config.num_kv_heads](
          const GgufMetadata& metadata, std::string_view tensor) -> std::optional<GgufModule> {
    const GgufArchitecture& architecture = find_gguf_architecture(metadata);
    if (!is_of_family(architecture, family)) {
      throw Error(ErrorCode::invalid,
                  fmt::format("{}: general.architecture is \"{}\", but the base model is \"{}\"",
                              metadata.file(), architecture.name, family));
    }
    auto name = gguf_module_name(architecture, tensor);
    if (!name) return std::nullopt;
    GgufModule module{.module = std::move(*name)};
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
  return adapter_base_of(read_model_config(source, LoadFormat::files),
                         WeightReader(*weights).file_name(""));
}

}  // namespace paceline
