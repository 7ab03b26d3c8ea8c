// The names of the experts of mixtures in adapters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace paceline {

// What a layer's experts are called: "mlp.experts.3.gate_proj" is a projection of expert 3.
inline constexpr std::string_view kExpertsPart = "mlp.experts";

// 3 and "gate_proj" of "mlp.experts.3.gate_proj".
struct ExpertPart {
  int64_t expert = 0;
  std::string_view projection;
};
// Nothing of another part.
std::optional<ExpertPart> split_expert_part(std::string_view part);

// A module's name with its experts called as above: "layers.0.block_sparse_moe.experts.3.w1", as
// Mixtral's are in transformers 4, is "layers.0.mlp.experts.3.gate_proj".
std::string canonical_expert_module(std::string_view module);

// "layers.0.mlp.experts.gate_proj" of "layers.0.mlp.experts.3.gate_proj"; nothing of a module that
// isn't an expert's.
std::optional<std::string> without_expert(std::string_view module);

// The other way round, with this expert.
std::string with_expert(std::string_view module, int64_t expert);

}  // namespace paceline
