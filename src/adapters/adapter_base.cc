#include "adapters/adapter_base.h"

#include <fmt/format.h>

#include <charconv>

#include "adapters/expert_names.h"
#include "base/suggest.h"
#include "weights/weight_reader.h"

namespace paceline {
namespace {

constexpr std::string_view kLayersPrefix = "layers.";
constexpr std::string_view kHeadModule = "lm_head";

// "layers.3.attn.c_attn" of "h.3.attn.c_attn", as GPT-2 and its kin call their layers, and MPT's of
// "blocks.3".
std::string with_layers(std::string_view name) {
  for (const std::string_view list : {"h.", "blocks."}) {
    if (name.starts_with(list)) {
      return fmt::format("{}{}", kLayersPrefix, name.substr(list.size()));
    }
  }
  return std::string(name);
}

bool fits(const AdapterBase& base, std::string_view module) {
  if (base.is_known()) return base.size_of(module).has_value();
  constexpr size_t kMaxNameBytes = 512;  // patterns run over it
  if (module.size() > kMaxNameBytes) return false;
  return module == kHeadModule || split_layer_module(module).has_value();
}

}  // namespace

const std::string& ExpertNames::projection(std::string_view canonical) const {
  if (canonical == "gate_proj") return gate;
  return canonical == "up_proj" ? up : down;
}

std::optional<std::string> find_module(const AdapterBase& base, std::string_view name) {
  for (const std::string_view prefix : decoder_prefixes()) {
    if (!name.starts_with(prefix)) continue;
    std::string module = canonical_expert_module(with_layers(name.substr(prefix.size())));
    if (fits(base, module)) return module;
  }
  return std::nullopt;
}

std::string suggest_module(const AdapterBase& base, std::string_view name) {
  if (!base.is_known()) return "; expected a layer's module, such as \"layers.0.self_attn.q_proj\"";
  for (const std::string_view prefix : decoder_prefixes()) {
    if (!name.starts_with(prefix)) continue;
    name.remove_prefix(prefix.size());
    break;
  }
  if (const auto split = split_layer_module(name);
      split && base.num_layers > 0 && split->layer >= base.num_layers) {
    return fmt::format("; it has {} layers, from 0 to {}", base.num_layers, base.num_layers - 1);
  }
  const std::vector<std::string_view> known(base.modules.begin(), base.modules.end());
  return did_you_mean(name, known);
}

std::string prefixed(const ModulePrefixes& prefixes, std::string_view module) {
  if (!module.starts_with(kLayersPrefix)) return fmt::format("{}{}", prefixes.head, module);
  return fmt::format("{}{}{}", prefixes.layers, prefixes.layer_list,
                     module.substr(kLayersPrefix.size()));
}

std::optional<LayerModule> split_layer_module(std::string_view module) {
  constexpr int64_t kMaxLayers = 1 << 20;
  if (!module.starts_with(kLayersPrefix)) return std::nullopt;
  const std::string_view rest = module.substr(kLayersPrefix.size());
  const size_t dot = rest.find('.');
  if (dot == rest.npos || dot + 1 == rest.size()) return std::nullopt;
  LayerModule split{.part = rest.substr(dot + 1)};
  const auto parsed = std::from_chars(rest.data(), rest.data() + dot, split.layer);
  if (parsed.ec != std::errc() || parsed.ptr != rest.data() + dot) return std::nullopt;
  if (split.layer < 0 || split.layer >= kMaxLayers) return std::nullopt;
  return split;
}

}  // namespace paceline
