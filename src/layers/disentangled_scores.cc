#include "layers/disentangled_scores.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "kernels/backend.h"
#include "layers/load_context.h"
#include "layers/norm.h"

namespace paceline {
namespace {

constexpr const char* kEmbeddings = "rel_embeddings.weight";

Tensor as_matrix(std::vector<float>& elements, int64_t rows, int64_t columns) {
  return Tensor(elements.data(), DType::f32, {rows, columns});
}

// [num_embeddings, hidden], normed where they are.
OwnedTensor load_embeddings(const LoadContext& context, const DisentangledConfig& config) {
  Backend& backend = context.backend;
  const int64_t rows = config.num_embeddings(), width = config.hidden_size;
  const std::vector<float> stored = read_elements(context, kEmbeddings, {rows, width});
  OwnedTensor embeddings = allocate_tensor(backend.memory(), DType::f32, {rows, width});
  backend.write(stored, embeddings.view);
  if (config.has_norm) {
    const OwnedTensor weight =
        write_vector(backend, read_vector(context, "rel_norm.weight", width));
    const OwnedTensor bias = write_vector(backend, read_vector(context, "rel_norm.bias", width));
    backend.layer_norm(embeddings.view, weight.view, &bias.view, config.norm_eps, embeddings.view);
  }
  return embeddings;
}

// The embeddings through a projection of all heads, in float32: [num_embeddings, heads * head_dim].
std::vector<float> project_embeddings(const LoadContext& context, const std::string& projection,
                                      const Tensor& embeddings, const DisentangledConfig& config) {
  Backend& backend = context.backend;
  const int64_t rows = config.num_embeddings(), width = config.num_heads * config.head_dim;
  std::vector<float> stored =
      read_elements(context, projection + ".weight", {width, config.hidden_size});
  const Tensor weight = as_matrix(stored, width, config.hidden_size);
  const PackedMatrix packed = backend.pack_matrix(std::span(&weight, 1), DType::f32);
  const OwnedTensor bias = write_vector(backend, read_vector(context, projection + ".bias", width));
  const OwnedTensor out = allocate_tensor(backend.memory(), DType::f32, {rows, width});
  backend.matmul(embeddings, packed, &bias.view, out.view);
  std::vector<float> staging;
  const std::span<const float> projected = backend.read(out.view, staging);
  return {projected.begin(), projected.end()};
}

// Of each head, packed for products with its queries or keys.
std::vector<PackedMatrix> load_heads(const LoadContext& context, const std::string& name,
                                     const std::string& projection,
                                     const DisentangledConfig& config) {
  const int64_t rows = config.num_embeddings(), width = config.num_heads * config.head_dim;
  Backend& backend = context.backend;
  auto stored = prepared_vector(context, name, rows * width);
  if (!stored) {
    const OwnedTensor embeddings = load_embeddings(context, config);
    stored = store_vector(context, name,
                          project_embeddings(context, projection, embeddings.view, config));
  }
  std::vector<float> staging;
  const std::span<const float> all = backend.read(stored->view, staging);
  std::vector<PackedMatrix> heads;
  for (int64_t head = 0; head < config.num_heads; ++head) {
    std::vector<float> elements;
    for (int64_t row = 0; row < rows; ++row) {
      const auto at = all.begin() + row * width + head * config.head_dim;
      elements.insert(elements.end(), at, at + config.head_dim);
    }
    const Tensor matrix = as_matrix(elements, rows, config.head_dim);
    heads.push_back(backend.pack_matrix(std::span(&matrix, 1), DType::f32));
  }
  return heads;
}

std::vector<int32_t> list_buckets(const DisentangledConfig& config) {
  std::vector<int32_t> buckets;
  for (int64_t i = 0; i < 2 * config.reach + kPositionScorePadding; ++i) {
    const int64_t distance = config.reach - i;  // of a query from its key
    const int64_t bucket =
        config.log_distance > 0 ? log_bucket(distance, config.span, config.log_distance) : distance;
    buckets.push_back(static_cast<int32_t>(
        std::clamp<int64_t>(bucket + config.span, 0, config.num_embeddings() - 1)));
  }
  return buckets;
}

}  // namespace

int64_t log_bucket(int64_t distance, int64_t span, int64_t log_distance) {
  const int64_t middle = span / 2, away = std::abs(distance);
  if (away <= middle) return distance;
  const auto half = static_cast<float>(middle);
  const float share = std::log(static_cast<float>(away) / half) /
                      std::log(static_cast<float>(static_cast<double>(log_distance - 1) /
                                                  static_cast<double>(middle)));
  const auto bucket = static_cast<int64_t>(std::ceil(share * (half - 1.0f)) + half);
  return distance < 0 ? -bucket : bucket;
}

DisentangledScores::DisentangledScores(const LoadContext& context, const std::string& name,
                                       const DisentangledConfig& config)
    : config_(config), buckets_(list_buckets(config)) {
  if (config.meets_queries) {
    of_queries_ = load_heads(context, name + ".position_keys",
                             name + (config.shares_weights ? ".k_proj" : ".pos_key_proj"), config);
  }
  if (config.meets_keys) {
    of_keys_ = load_heads(context, name + ".position_queries",
                          name + (config.shares_weights ? ".q_proj" : ".pos_query_proj"), config);
  }
}

// Columns from `first` on of `terms`, as [rows, heads, num_embeddings].
Tensor DisentangledScores::project(Backend& backend, const std::vector<PackedMatrix>& embeddings,
                                   const Tensor& heads, const Tensor& terms, int64_t first) const {
  const int64_t rows = heads.size(0), width = config_.num_embeddings();
  for (int64_t head = 0; head < config_.num_heads; ++head) {
    const Tensor in =
        heads.as_strided({rows, config_.head_dim}, {heads.stride(0), 1}, head * heads.stride(1));
    const int64_t column = first + head * width;
    backend.matmul(in, embeddings[static_cast<size_t>(head)], nullptr,
                   terms.slice(1, column, column + width));
  }
  return terms.as_strided({rows, config_.num_heads, width}, {terms.stride(0), width, 1}, first);
}

PositionScores DisentangledScores::forward(Backend& backend, const Tensor& q, const Tensor& k,
                                           const Tensor& terms) const {
  PositionScores scores{.buckets = buckets_, .reach = config_.reach, .reach_ahead = config_.reach};
  int64_t first = 0;
  if (config_.meets_queries) {
    scores.of_queries = project(backend, of_queries_, q, terms, first);
    first += config_.num_heads * config_.num_embeddings();
  }
  if (config_.meets_keys) scores.of_keys = project(backend, of_keys_, k, terms, first);
  return scores;
}

}  // namespace paceline
