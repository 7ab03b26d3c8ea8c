#include "layers/position_embedding.h"

#include <vector>

#include "kernels/backend.h"
#include "layers/load_context.h"

namespace paceline {
namespace {

constexpr const char* kPositions = "embed_positions.weight";
constexpr const char* kTypes = "embed_types.weight";

OwnedTensor load_sums(const LoadContext& context, const PositionEmbeddingConfig& config) {
  const int64_t size = config.num_positions * config.width;
  if (auto prepared = prepared_vector(context, kPositions, size)) return std::move(*prepared);
  const int64_t rows = config.first + config.num_positions;
  std::vector<float> sums = read_elements(context, kPositions, {rows, config.width});
  sums.erase(sums.begin(), sums.begin() + config.first * config.width);
  if (config.num_types > 0) {
    const std::vector<float> types =
        read_elements(context, kTypes, {config.num_types, config.width});
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] += types[i % static_cast<size_t>(config.width)];
  }
  return store_vector(context, kPositions, sums);
}

}  // namespace

PositionEmbedding::PositionEmbedding(const LoadContext& context,
                                     const PositionEmbeddingConfig& config)
    : table_(load_sums(context, config)),
      rows_(table_.view.as_strided({config.num_positions, config.width}, {config.width, 1})) {}

void PositionEmbedding::add_forward(Backend& backend, Indices<int32_t> positions, const Tensor& x,
                                    const Tensor& scratch) const {
  backend.gather_rows(rows_, positions, scratch);
  backend.add(x, scratch, x);
}

}  // namespace paceline
