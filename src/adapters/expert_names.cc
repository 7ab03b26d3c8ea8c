#include "adapters/expert_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "adapters/adapter_base.h"

namespace paceline {

std::optional<ExpertPart> split_expert_part(std::string_view part) {
  if (!part.starts_with(kExpertsPart) || part.size() <= kExpertsPart.size() + 1 ||
      part[kExpertsPart.size()] != '.') {
    return std::nullopt;
  }
  const std::string_view rest = part.substr(kExpertsPart.size() + 1);
  const size_t dot = rest.find('.');
  if (dot == rest.npos || dot + 1 == rest.size()) return std::nullopt;
  ExpertPart split{.projection = rest.substr(dot + 1)};
  const auto parsed = std::from_chars(rest.data(), rest.data() + dot, split.expert);
  if (parsed.ec != std::errc() || parsed.ptr != rest.data() + dot) return std::nullopt;
  if (fmt::format("{}", split.expert) != rest.substr(0, dot) || split.expert < 0) {
    return std::nullopt;
  }
  return split;
}

std::string canonical_expert_module(std::string_view module) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kProjections = {
      {{".w1", ".gate_proj"}, {".w2", ".down_proj"}, {".w3", ".up_proj"}}};
  constexpr std::string_view kForgetGate = "self_attn.forget_gate.";
  const auto split = split_layer_module(module);
  if (!split) return std::string(module);
  const auto experts = std::ranges::find_if(kOtherExpertsParts, [&](std::string_view other) {
    return split->part.starts_with(std::string(other) + ".");
  });
  if (experts == kOtherExpertsParts.end()) {
    if (split->part.starts_with(kForgetGate)) {
      return fmt::format("layers.{}.self_attn.{}", split->layer,
                         std::string_view(split->part).substr(kForgetGate.size()));
    }
    return fmt::format("layers.{}.{}", split->layer, canonical_router_part(split->part));
  }
  std::string name = fmt::format("layers.{}.{}{}", split->layer, kExpertsPart,
                                 std::string_view(split->part).substr(experts->size()));
  for (const auto& [ending, canonical] : kProjections) {
    if (!name.ends_with(ending)) continue;
    name.replace(name.size() - ending.size(), ending.size(), canonical);
    break;
  }
  return name;
}

std::string canonical_router_part(std::string_view part) {
  const bool is_sparse = std::ranges::find(kSparseRouterParts, part) != kSparseRouterParts.end();
  return std::string(is_sparse ? kRouterPart : part);
}

bool is_router_part(std::string_view part) {
  constexpr std::string_view kGptOss = "mlp.router";
  return part == kRouterPart || part == kGptOss;
}

std::optional<std::string> without_expert(std::string_view module) {
  const auto layer = split_layer_module(module);
  if (!layer) return std::nullopt;
  const auto expert = split_expert_part(layer->part);
  if (!expert) return std::nullopt;
  return fmt::format("layers.{}.{}.{}", layer->layer, kExpertsPart, expert->projection);
}

std::string with_expert(std::string_view module, int64_t expert) {
  const size_t dot = std::min(module.rfind('.'), module.size());
  return fmt::format("{}.{}{}", module.substr(0, dot), expert, module.substr(dot));
}

}  // namespace paceline
