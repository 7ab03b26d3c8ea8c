// Mixtures of experts with random weights, for the tests of their operations.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/kernels/op_inputs.h"

namespace paceline {

struct MixtureShape {
  int64_t rows = 1;
  int64_t experts = 4;
  int64_t slots = 2;
  int64_t inputs = 64;
  int64_t width = 40;       // of the inner columns, at least
  int64_t last_width = 40;  // of the last expert's
  int64_t outputs = 70;
  bool has_bias = false;
};

// Experts of one weight type, gate and up in one matrix, and a choice for each row.
struct MixtureInputs {
  MixtureInputs(const WeightType& type, const MixtureShape& shape, ThreadPool& threads,
                Memory& memory);
  MixtureInputs(const MixtureInputs&) = delete;

  Routing routing() const { return {chosen.view, weights.view}; }

  OwnedTensor x, out;
  OwnedTensor chosen, weights;  // of the routing
  std::vector<PackedMatrix> matrices;
  std::vector<OwnedTensor> biases;
  std::vector<GatedMlpWeights> experts;
};

}  // namespace paceline
