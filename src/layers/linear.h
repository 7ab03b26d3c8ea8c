// Linear is a product with packed weights; several projections of the same input are packed as one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/packed_matrix.h"
#include "layers/stored_rows.h"
#include "tensor/tensor.h"

namespace paceline {

class Backend;
struct LoadContext;

// One [out_features, in_features] weight of a checkpoint, by canonical name without ".weight".
struct Projection {
  std::string name;
  int64_t out_features = 0;
  // The rows of the outputs in their order, where that isn't the file's; all of them.
  std::vector<StoredRows> order = {};
  bool has_bias = true;  // with Bias::stored; else it is zero
};

class Linear {
 public:
  Linear() = default;
  enum class Bias : bool { none, stored };

  // Stacks the projections' outputs in the order given; Bias::stored reads NAME.bias of each too.
  Linear(const LoadContext& context, std::span<const Projection> projections, int64_t in_features,
         Bias bias);

  // x [rows, in_features] -> out [rows, sum of out_features]
  void forward(Backend& backend, const Tensor& x, const Tensor& out) const;

  // Outputs [first, first + count), of projections that are packed together.
  PackedColumns columns(int64_t first, int64_t count) const;

  int64_t out_features() const;
  // The packed matrices: one, or several if the projections' formats differ.
  std::span<const PackedMatrix> weights() const { return weights_; }
  const Tensor* bias() const { return bias_ ? &bias_->view : nullptr; }  // [out_features] float32

  // Replaces the values, keeping their types: training does it after each step. The weights are
  // plain.  weights [out_features, in_features], bias [out_features] if there is one; both float32
  void set_values(Backend& backend, const Tensor& weights, std::span<const float> bias);

 private:
  void pack_stored_matrices(const LoadContext& context, std::span<const Projection> projections,
                            int64_t in_features);

  std::vector<PackedMatrix> weights_;
  std::optional<OwnedTensor> bias_;  // [out_features] float32
};

}  // namespace paceline
