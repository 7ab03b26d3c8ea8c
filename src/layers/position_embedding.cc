#include "layers/position_embedding.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "layers/load_context.h"

namespace paceline {
namespace {

constexpr const char* kPositions = "embed_positions.weight";
constexpr const char* kTypes = "embed_types.weight";

int64_t num_rows(const PositionEmbeddingConfig& config) {
  return std::max<int64_t>(config.num_types, 1) * std::max<int64_t>(config.num_positions, 1);
}

// In float32 as transformers computes them.
std::vector<float> make_sinusoids(const PositionEmbeddingConfig& config) {
  const int64_t half = config.width / 2;
  const auto step =
      static_cast<float>(-std::log(10000.0) / static_cast<double>(std::max<int64_t>(half - 1, 1)));
  std::vector<float> all(static_cast<size_t>(config.num_positions * config.width), 0.0f);
  for (int64_t position = 0; position < config.num_positions; ++position) {
    const int64_t row = config.first + position;
    if (row == config.zero_row) continue;
    for (int64_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(row) * std::exp(static_cast<float>(i) * step);
      const auto at = static_cast<size_t>(position * config.width + i);
      all[at] = std::sin(angle);
      all[at + static_cast<size_t>(half)] = std::cos(angle);
    }
  }
  return all;
}

// Those of the positions that tokens have; without any, one of zeros.
std::vector<float> read_positions(const LoadContext& context,
                                  const PositionEmbeddingConfig& config) {
  const auto width = static_cast<size_t>(config.width);
  if (config.num_positions == 0) return std::vector<float>(width, 0.0f);
  if (config.sinusoids) return make_sinusoids(config);
  std::vector<float> positions =
      read_elements(context, kPositions, {config.first + config.num_positions, config.width});
  const auto before = static_cast<size_t>(config.first) * width;
  positions.erase(positions.begin(), positions.begin() + static_cast<std::ptrdiff_t>(before));
  return positions;
}

OwnedTensor load_sums(const LoadContext& context, const PositionEmbeddingConfig& config) {
  const auto width = static_cast<size_t>(config.width);
  if (auto prepared = prepared_vector(context, kPositions, num_rows(config) * config.width)) {
    return std::move(*prepared);
  }
  const std::vector<float> of_positions = read_positions(context, config);
  std::vector<float> types(width, 0.0f);
  if (config.num_types > 0) {
    types = read_elements(context, kTypes, {config.num_types, config.width});
  }
  std::vector<float> sums;
  sums.reserve(static_cast<size_t>(num_rows(config)) * width);
  for (size_t type = 0; type < types.size(); type += width) {
    for (size_t i = 0; i < of_positions.size(); ++i) {
      sums.push_back(of_positions[i] + types[type + i % width]);
    }
  }
  return store_vector(context, kPositions, sums);
}

}  // namespace

PositionEmbedding::PositionEmbedding(const LoadContext& context,
                                     const PositionEmbeddingConfig& config)
    : num_positions_(config.num_positions),
      table_(load_sums(context, config)),
      rows_(table_.view.as_strided({num_rows(config), config.width}, {config.width, 1})) {}

void PositionEmbedding::add_forward(Backend& backend, const BatchArrays& batch, const Tensor& x,
                                    const Tensor& scratch) const {
  const bool has_types = batch.token_types.size() > 0;
  if (num_positions_ > 0 && !has_types) return add_forward(backend, batch.positions, x, scratch);
  const auto num_rows = static_cast<size_t>(x.size(0));
  std::vector<int32_t> rows(num_rows, 0);
  for (size_t i = 0; i < num_rows; ++i) {
    if (num_positions_ > 0) rows[i] = batch.positions.host()[i];
    if (has_types) {
      rows[i] +=
          batch.token_types.host()[i] * static_cast<int32_t>(std::max<int64_t>(num_positions_, 1));
    }
  }
  add_forward(backend, Indices<int32_t>(rows), x, scratch);
}

void PositionEmbedding::add_forward(Backend& backend, Indices<int32_t> positions, const Tensor& x,
                                    const Tensor& scratch) const {
  backend.gather_rows(rows_, positions, scratch);
  backend.add(x, scratch, x);
}

}  // namespace paceline
