#include "layers/linear.h"

#include <array>
#include <utility>

#include "base/error.h"
#include "kernels/backend.h"
#include "layers/load_context.h"
#include "layers/scratch.h"

namespace paceline {
namespace {

OwnedTensor load_biases(const LoadContext& context, std::span<const Projection> projections,
                        int64_t out_features) {
  const std::string first_name = projections.front().name + ".bias";
  if (auto prepared = prepared_vector(context, first_name, out_features)) {
    return std::move(*prepared);
  }
  std::vector<float> biases;
  biases.reserve(static_cast<size_t>(out_features));
  for (const Projection& projection : projections) {
    if (!projection.has_bias) {
      biases.resize(biases.size() + static_cast<size_t>(projection.out_features));
      continue;
    }
    const auto part = read_vector(context, projection.name + ".bias", projection.out_features);
    if (projection.order.empty()) biases.insert(biases.end(), part.begin(), part.end());
    for (const auto& [first, count] : projection.order) {
      biases.insert(biases.end(), part.begin() + first, part.begin() + first + count);
    }
  }
  return store_vector(context, first_name, biases);
}

// The prepared matrices, each by the name of its first projection; none without a prepared file.
std::vector<PackedMatrix> prepared_matrices(const LoadContext& context,
                                            std::span<const Projection> projections,
                                            int64_t in_features) {
  std::vector<PackedMatrix> matrices;
  while (!projections.empty()) {
    const std::string name = projections.front().name + ".weight";
    auto matrix = prepared_matrix(context, name, in_features);
    if (!matrix) break;
    int64_t covered = 0;
    while (covered < matrix->n && !projections.empty()) {
      covered += projections.front().out_features;
      projections = projections.subspan(1);
    }
    if (covered != matrix->n) context.prepared->refuse(name, matrix->n, covered);
    matrices.push_back(std::move(*matrix));
  }
  return matrices;
}

}  // namespace

Linear::Linear(const LoadContext& context, std::span<const Projection> projections,
               int64_t in_features, Bias bias) {
  weights_ = prepared_matrices(context, projections, in_features);
  if (weights_.empty()) pack_stored_matrices(context, projections, in_features);
  if (bias == Bias::stored) bias_ = load_biases(context, projections, out_features());
}

void Linear::pack_stored_matrices(const LoadContext& context,
                                  std::span<const Projection> projections, int64_t in_features) {
  std::vector<std::unique_ptr<StoredMatrix>> parts;
  const auto pack_parts = [&] {
    weights_.push_back(pack_stored(context, parts));
    parts.clear();
  };
  for (const Projection& projection : projections) {
    auto part =
        std::make_unique<StoredMatrix>(context, projection.name + ".weight",
                                       projection.out_features, in_features, projection.order);
    if (!parts.empty() && !parts.front()->packs_with(*part)) pack_parts();
    parts.push_back(std::move(part));
  }
  pack_parts();
}

int64_t Linear::out_features() const {
  int64_t total = 0;
  for (const PackedMatrix& weight : weights_) total += weight.n;
  return total;
}

PackedColumns Linear::columns(int64_t first, int64_t count) const {
  int64_t begin = 0;  // of the matrix's outputs among all
  for (const PackedMatrix& weight : weights_) {
    const int64_t end = begin + weight.n;
    if (first < end) {
      PackedColumns columns{.matrix = &weight, .first = first - begin, .count = count};
      if (bias_) columns.bias = bias_->view.slice(0, begin, end);
      return columns;
    }
    begin = end;
  }
  check_failed("Linear::columns", __FILE__, __LINE__, "columns beyond the outputs");
}

void Linear::set_values(Backend& backend, const Tensor& weights, std::span<const float> bias) {
  PL_CHECK(weights_.size() == 1 && !weights_[0].groups, "values of plain weights");
  PL_CHECK(weights.size(0) == weights_[0].n && weights.size(1) == weights_[0].k,
           "values of the weights' shape");
  PL_CHECK(bias.empty() == !bias_.has_value(), "a bias where there is one");
  weights_[0] = backend.pack_matrix(std::array{weights}, weights_[0].dtype);
  if (bias_) bias_ = write_vector(backend, bias);
}

void Linear::forward(Backend& backend, const Tensor& x, const Tensor& out) const {
  int64_t first = 0;
  for (const PackedMatrix& weight : weights_) {
    const int64_t end = first + weight.n;
    const Tensor bias = bias_ ? bias_->view.slice(0, first, end) : Tensor();
    backend.matmul(x, weight, bias_ ? &bias : nullptr, out.slice(1, first, end));
    first = end;
  }
}

}  // namespace paceline
