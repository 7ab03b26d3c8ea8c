// GatedProduct computes the inner columns of a feed-forward network: the products with gate and up,
// the activation, and the inputs of the last product.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/cpu_product.h"
#include "kernels/operands.h"

namespace paceline {

// Inner columns are computed in units of this many, or of the inputs of the last product that share
// a scale: as many panels as a product of many rows takes at once.
constexpr int64_t kInnerColumns = 128;

// The number of columns that a thread computes at a time, and the floats of a row of them.
struct InnerColumns {
  int64_t at_once = 0;
  int64_t stride = 0;

  // Pieces have up to `units` units of `unit` columns and `rows` rows.
  InnerColumns(int64_t rows, int64_t unit, int64_t units);
  InnerColumns() = default;

  // Bytes of a thread's columns of gate and up.
  int64_t bytes(int64_t rows) const { return 2 * rows * stride * int64_t{sizeof(float)}; }
};

class GatedProduct {
 public:
  // Both must outlive it.
  GatedProduct(const KernelTable& kernels, const GatedMlpWeights& mlp);

  const CpuProduct& gate() const { return gate_; }
  const CpuProduct& up() const { return up_; }
  const CpuProduct& down() const { return down_; }
  int64_t width() const { return mlp_.gate.count; }
  // Whether inner rows are float32 numbers, which down().prepare() makes inputs once a row is
  // whole: where `down` takes its inputs in an order of its own.
  bool has_plain_inner_rows() const { return down_.has_input_order(); }
  // Bytes from one inner row to the next.
  int64_t inner_stride() const {
    return has_plain_inner_rows() ? width() * int64_t{sizeof(float)} : down_.input_stride();
  }
  // Columns of a unit.
  int64_t unit() const;
  int64_t weight_bytes() const;  // of gate and up
  int64_t scratch_bytes() const;
  // The gate's first panel of the columns from unit `unit` on.
  const void* gate_panel(int64_t unit) const;

  struct Piece {
    const std::byte* gate_rows = nullptr;  // the first row, prepared
    const std::byte* up_rows = nullptr;
    int64_t num_rows = 0;
    int64_t first_unit = 0;
    int64_t last_unit = 0;
    std::byte* inner_rows = nullptr;  // the first row, of inputs of `down` or of numbers
    InnerColumns columns;
    std::byte* scratch = nullptr;  // columns.bytes(num_rows or more) + scratch_bytes()
    WeightStreams streams{};
    const void* next_panels = nullptr;  // the panels that this thread reads next; nullptr: unknown
  };
  void run(const Piece& piece) const;

 private:
  const KernelTable& kernels_;
  const GatedMlpWeights& mlp_;
  CpuProduct gate_, up_, down_;
};

}  // namespace paceline
