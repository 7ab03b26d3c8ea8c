// CpuProduct multiplies by one matrix with the kernels of an instruction set: it prepares rows of
// inputs, then multiplies prepared rows by panels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/product_split.h"
#include "kernels/packed_matrix.h"

namespace paceline {

// A matrix of float32 sums.
struct ProductOutput {
  float* elements = nullptr;
  int64_t stride = 0;
};

class CpuProduct {
 public:
  // Both must outlive it.
  CpuProduct(const KernelTable& kernels, const PackedMatrix& matrix);

  // Prepares elements [first, first + count) of a row of inputs, which begin at `x`: whole
  // multiples of input_length() for quantised weights, whole interleaved elements for others; the
  // whole row for weights with an order of the inputs.
  void prepare(const float* x, int64_t first, int64_t count, std::byte* row) const;
  // Prefetches the part of a row that prepare() will write.
  void prefetch(int64_t first, int64_t count, std::byte* row) const;
  bool has_input_order() const { return matrix_.has_input_order(); }
  // Elements of a row that share a scale; 1 where none do.
  int64_t input_length() const { return kind_ == Kind::int8 ? groups_.input_length : 1; }
  // Bytes from one prepared row to the next.
  int64_t input_stride() const { return input_stride_; }
  // Whether rows prepared for the other product fit this one.
  bool takes_inputs_of(const CpuProduct& other) const;

  struct Piece {
    const std::byte* inputs = nullptr;  // the first row, prepared
    int64_t num_rows = 0;
    int64_t first_panel = 0;
    int64_t last_panel = 0;
    const float* bias = nullptr;  // [n] of the matrix, or nullptr
    ProductOutput out;            // of the piece's first row and column
    std::byte* scratch = nullptr;
    WeightStreams streams{};  // of a few rows
    bool adds = false;        // to the outputs; plain weights alone
    // The panels that the same thread reads next, unless they follow the piece's: GroupTask.
    const void* next_panels = nullptr;
  };
  void multiply(const Piece& piece) const;
  // How many panels `num_rows` rows may read side by side; 0: they ignore Piece::streams.
  int64_t stream_panels(int64_t num_rows) const;
  ProductSplit split(int64_t num_rows, int64_t num_threads) const;
  int64_t scratch_bytes() const { return scratch_bytes_; }
  const void* panel(int64_t index) const { return matrix_.panel(index); }

 private:
  void prepare_in_order(const float* x, int64_t first, int64_t count, std::byte* row) const;

  enum class Kind : uint8_t {
    plain,
    int8,      // inputs of 8 bits
    expanded,  // some panels at a time are expanded to bfloat16
  };

  void multiply_plain(const Piece& piece, int64_t n) const;
  void multiply_int8(const Piece& piece, int64_t n) const;
  void multiply_expanded(const Piece& piece, int64_t n) const;
  void multiply_float8(const Piece& piece, int64_t n) const;
  // Whether products of `num_rows` rows read E4M3 codes instead of expanded panels.
  bool reads_float8(int64_t num_rows) const {
    return groups_.is_float8 && num_rows <= kernels_.float8_rows;
  }
  // Some panels of a piece, counted from its first, in the segment that begins at first_k.
  struct Part {
    int64_t first_panel;
    int64_t last_panel;
    int64_t first_k;
  };
  void add_expanded(const Piece& piece, int64_t n, const Part& part) const;

  const KernelTable& kernels_;
  const PackedMatrix& matrix_;
  Kind kind_ = Kind::plain;
  GroupPanels groups_;  // of quantised weights
  int64_t input_stride_ = 0;
  int64_t scratch_bytes_ = 0;
  bool unpacks_freely_ = false;
};

}  // namespace paceline
