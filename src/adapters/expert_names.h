// The names of the experts and routers of mixtures in adapters.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace paceline {

// What a layer's experts are called: "mlp.experts.3.gate_proj" is a projection of expert 3.
inline constexpr std::string_view kExpertsPart = "mlp.experts";

// What files call it as well: Mixtral's of transformers 4, LFM2's, Gemma 4's.
inline constexpr std::array<std::string_view, 3> kOtherExpertsParts = {
    "block_sparse_moe.experts", "feed_forward.experts", "experts"};

// 3 and "gate_proj" of "mlp.experts.3.gate_proj".
struct ExpertPart {
  int64_t expert = 0;
  std::string_view projection;
};
// Nothing of another part.
std::optional<ExpertPart> split_expert_part(std::string_view part);

// What a layer's router is called, but for gpt-oss's, which is "mlp.router".
inline constexpr std::string_view kRouterPart = "mlp.gate";
// What files call it as well: Mixtral's of transformers 4, Granite's of 5 and of 4, LFM2's, Gemma
// 4's.
inline constexpr std::array<std::string_view, 5> kSparseRouterParts = {
    "block_sparse_moe.gate", "block_sparse_moe.router", "block_sparse_moe.router.layer",
    "feed_forward.gate", "router.proj"};

// A module's name with its experts and router called as above: of Mixtral in transformers 4
// "layers.0.block_sparse_moe.experts.3.w1" is "layers.0.mlp.experts.3.gate_proj", and
// "layers.0.block_sparse_moe.gate" is "layers.0.mlp.gate". The projections of a forget gate, a
// module of its own in transformers 5, are those of self_attn, as in files.
std::string canonical_expert_module(std::string_view module);
// The same of a router's part.
std::string canonical_router_part(std::string_view part);

// Whether a part is a router. In transformers 5 its weight is a parameter, which PEFT adapts with
// `target_parameters` only.
bool is_router_part(std::string_view part);

// "layers.0.mlp.experts.gate_proj" of "layers.0.mlp.experts.3.gate_proj"; nothing of a module that
// isn't an expert's.
std::optional<std::string> without_expert(std::string_view module);

// The other way round, with this expert.
std::string with_expert(std::string_view module, int64_t expert);

}  // namespace paceline
