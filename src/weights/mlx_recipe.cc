#include "weights/mlx_recipe.h"

#include <algorithm>
#include <charconv>

namespace paceline {
namespace {

struct NamedBits {
  std::string_view name;
  int low;
  int high;
};

constexpr NamedBits kMixed[] = {
    {"mixed_2_6", 2, 6}, {"mixed_3_4", 3, 4}, {"mixed_3_6", 3, 6}, {"mixed_4_6", 4, 6}};

bool mentions(std::string_view module, std::string_view part) {
  return module.find(part) != module.npos;
}

}  // namespace

std::optional<int64_t> layer_of(std::string_view name) {
  constexpr std::string_view kLayers = "layers.", kBlocks = "blk.";
  constexpr int64_t kMaxLayers = 1 << 20;
  const bool is_gguf = name.starts_with(kBlocks);
  const size_t at = is_gguf ? 0 : name.find(kLayers);
  if (at == name.npos) return std::nullopt;
  const std::string_view rest = name.substr(at + (is_gguf ? kBlocks : kLayers).size());
  int64_t index = 0;
  const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), index);
  const bool whole = parsed.ptr != rest.data() + rest.size() && *parsed.ptr == '.';
  if (parsed.ec != std::errc() || !whole || index < 0 || index >= kMaxLayers) return std::nullopt;
  return index;
}

bool is_sensitive_layer(int64_t layer_index, int64_t num_layers) {
  const int64_t eighth = num_layers / 8;
  return layer_index < eighth || layer_index >= 7 * num_layers / 8 ||
         (layer_index - eighth) % 3 == 2;
}

std::optional<MlxRecipe> MlxRecipe::mixed(std::string_view name, int64_t group_size,
                                          int64_t num_layers) {
  const auto* const bits = std::ranges::find(kMixed, name, &NamedBits::name);
  if (bits == std::end(kMixed)) return std::nullopt;
  return MlxRecipe({.bits = bits->low, .group_size = group_size}, bits->high, num_layers);
}

AffineFormat MlxRecipe::format_of(std::string_view module) const {
  const bool projects = mentions(module, "v_proj") || mentions(module, "down_proj");
  const bool high = mentions(module, "lm_head") ||
                    (projects && is_sensitive_layer(layer_of(module).value_or(0), num_layers_));
  return {.bits = high ? high_bits_ : usual_.bits, .group_size = usual_.group_size};
}

int64_t count_layers(const std::vector<CheckpointEntry>& entries) {
  int64_t count = 0;
  for (const CheckpointEntry& entry : entries) {
    count = std::max(count, layer_of(entry.name).value_or(-1) + 1);
  }
  return count;
}

}  // namespace paceline
