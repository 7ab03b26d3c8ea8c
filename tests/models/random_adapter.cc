#include "tests/models/random_adapter.h"

#include <fmt/format.h>

#include <vector>

#include "base/random.h"

namespace paceline::testing {
namespace {

OwnedTensor random_elements(Memory& memory, DType dtype, Extents shape, uint64_t seed, float size) {
  OwnedTensor tensor = allocate_tensor(memory, dtype, shape);
  std::vector<float> elements(static_cast<size_t>(tensor.view.num_elements()));
  for (size_t i = 0; i < elements.size(); ++i) {
    elements[i] = size * static_cast<float>(2 * uniform_draw(seed, i) - 1);
  }
  copy_elements(Tensor(elements.data(), DType::f32, shape), tensor.view);
  return tensor;
}

}  // namespace

std::vector<BlockProjection> distinct_projections(const DecoderConfig& config, int64_t layer,
                                                  bool gate_up_apart) {
  std::vector<BlockProjection> parts = block_projections(config, layer);
  for (const BlockProjection& part : expert_projections(config, layer)) {
    const bool is_both = part.part.ends_with(".gate_up_proj");
    const bool is_one = part.part.ends_with(".gate_proj") || part.part.ends_with(".up_proj");
    const bool is_chosen = part.part.find(".experts.") != std::string::npos;
    if (is_chosen && (gate_up_apart || part.expert % 2 == 0 ? is_both : is_one)) continue;
    parts.push_back(part);
  }
  return parts;
}

Adapter random_adapter(const DecoderConfig& config, const RandomAdapter& options, Memory& memory) {
  std::vector<LoraPair> pairs;
  uint64_t seed = options.seed << 20;
  for (int64_t layer = 0; layer < config.num_layers(); ++layer) {
    auto projections = distinct_projections(config, layer, options.gate_up_apart);
    for (auto& router : router_projections(config, layer)) projections.push_back(router);
    for (const BlockProjection& projection : projections) {
      const std::string module = fmt::format("layers.{}.{}", layer, projection.part);
      seed += 2;
      if (options.adapts && !options.adapts(module)) continue;
      const auto ranks = static_cast<double>(options.max_rank - options.min_rank + 1);
      const auto draw = static_cast<int64_t>(uniform_draw(seed, 0) * ranks);
      const int64_t rank = options.min_rank + draw;
      pairs.push_back({.module = module,
                       .a = random_elements(memory, options.dtype, {rank, projection.in_features},
                                            seed, options.size),
                       .b = random_elements(memory, options.dtype, {projection.out_features, rank},
                                            seed + 1, options.b_size),
                       .alpha = 1.5 * static_cast<double>(rank),
                       .scale = 1.5f});
    }
  }
  return Adapter("", std::move(pairs));
}

}  // namespace paceline::testing
