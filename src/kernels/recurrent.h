// RecurrentOps is every operation of layers whose memory of a sequence is a state, which advances
// with its positions, instead of keys and values.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/operands.h"
#include "kernels/state_chunk.h"
#include "tensor/tensor.h"

namespace paceline {

// After the rows below `position`, a multiple of kStateChunk, a state is written to `block` too.
struct StateSave {
  int64_t position = 0;
  int32_t block = 0;
};

// Rows [first_row, first_row + num_rows) of a batch are consecutive positions of one sequence, from
// first_position on, whose state stands in `block`. A slice that begins at position 0 begins
// without a state, whatever the block holds.
struct StateSlice {
  int64_t first_row = 0;
  int64_t num_rows = 0;
  int64_t first_position = 0;
  int32_t block = 0;
  std::span<const StateSave> saves = {};  // ascending, within the slice's rows
};

// A block holds the state at the chunk that is open, and what follows from the rows of that chunk;
// with `num_states` 2 those of the chunk before it too, so that up to kStateChunk positions can be
// taken back. Rows are padded to whole lines of 16 elements.
struct DeltaShape {
  int64_t key_heads = 0;
  int64_t value_heads = 0;  // a multiple of key_heads: neighbours share keys and queries
  int64_t key_dim = 0;
  int64_t value_dim = 0;
  int64_t num_states = 1;

  int64_t padded_key() const { return padded(key_dim); }
  int64_t padded_value() const { return padded(value_dim); }
  int64_t state_elements() const { return value_heads * key_dim * padded_value(); }
  int64_t ring_rows() const { return num_states * kStateChunk; }
  // Where the parts of a block begin, in elements: states [num_states, value_heads, key_dim,
  // padded_value], keys [ring_rows, key_heads, padded_key], updates [ring_rows, value_heads,
  // padded_value], decays [ring_rows, value_heads].
  int64_t keys_begin() const { return num_states * state_elements(); }
  int64_t updates_begin() const { return keys_begin() + ring_rows() * key_heads * padded_key(); }
  int64_t decays_begin() const {
    return updates_begin() + ring_rows() * value_heads * padded_value();
  }
  int64_t block_elements() const { return padded(decays_begin() + ring_rows() * value_heads); }

  static constexpr int64_t padded(int64_t elements) { return (elements + 15) / 16 * 16; }
};

// Queries, keys, values and gates of a batch's rows.
struct DeltaInputs {
  Tensor q, k;       // [rows, key_heads, key_dim]
  Tensor v;          // [rows, value_heads, value_dim]
  Tensor log_decay;  // [rows, value_heads], at most 0
  Tensor beta;       // [rows, value_heads]
};

// A block holds the inputs before the chunk that is open, [num_states, taps - 1, padded channels],
// and the last inputs of its sequence, [ring_rows, padded channels]: those of position p are in row
// p % ring_rows.
struct ConvolutionShape {
  int64_t channels = 0;
  int64_t taps = 0;
  int64_t num_states = 1;  // as DeltaShape's

  int64_t padded_channels() const { return DeltaShape::padded(channels); }
  int64_t ring_rows() const { return taps - 1 + (num_states - 1) * kStateChunk; }
  int64_t ring_begin() const { return num_states * (taps - 1) * padded_channels(); }
  int64_t block_elements() const { return ring_begin() + ring_rows() * padded_channels(); }
  // Where the inputs of `position` stand, below a chunk that begins at `chunk`, and in the ring.
  int64_t before_chunk(int64_t chunk, int64_t position) const {
    const int64_t row = chunk / kStateChunk % num_states * (taps - 1) + position - chunk + taps - 1;
    return row * padded_channels();
  }
  int64_t in_ring(int64_t position) const {
    return ring_begin() + position % ring_rows() * padded_channels();
  }
};

struct ConvolutionWeights {
  Tensor taps;                   // [taps, channels]: the last one is that of the row itself
  const Tensor* bias = nullptr;  // [channels]
};

// On the device of the Backend that returns it, with its rules: shapes are checked in the front
// door, and every output element is a fixed sequence of floating-point operations that depends on
// its own sequence's rows up to its own.
class RecurrentOps {
 public:
  virtual ~RecurrentOps() = default;

  // Causal convolution of each channel over its sequence's rows, with zeros before position 0:
  // out[p] = bias + sum of taps[j] * x[p - taps + 1 + j] over ascending j.
  //                                       x, out [rows, channels], blocks [blocks, block_elements]
  void short_convolution(const ConvolutionShape& shape, const Tensor& x,
                         const ConvolutionWeights& weights, std::span<const StateSlice> slices,
                         const Tensor& blocks, const Tensor& out);

  // out = -rates * log(1 + exp(x + bias)), the gates of decay of Mamba (Gu and Dao, 2023) and of
  // gated delta rules.                    x, out [rows, heads], bias, rates [heads]
  void decay_gates(const Tensor& x, const Tensor& bias, const Tensor& rates, const Tensor& out);

  // The gated delta rule (Yang, Kautz, Hatamizadeh, "Gated Delta Networks", 2024), by chunks (Yang
  // et al., "Parallelizing Linear Transformers with the Delta Rule", 2024) of kStateChunk absolute
  // positions. With S the state at a chunk's start and G the log decays summed from there, row i is
  //   u_i = beta_i (v_i - exp(G_i) S^T k_i - sum over j < i of exp(G_i - G_j) (k_j . k_i) u_j)
  //   out_i = exp(G_i) S^T q_i + sum over j <= i of exp(G_i - G_j) (k_j . q_i) u_j
  // and the chunk's end, of last row n, has exp(G_n) S + sum over j of exp(G_n - G_j) k_j u_j^T.
  //                                       out [rows, value_heads, value_dim], blocks [blocks,
  // block_elements]
  void delta_rule(const DeltaShape& shape, const DeltaInputs& inputs,
                  std::span<const StateSlice> slices, const Tensor& blocks, const Tensor& out);

  // Copies whole blocks, in this order.   blocks [blocks, elements]
  void copy_states(const Tensor& blocks, std::span<const BlockMove> moves);

 private:
  virtual void do_short_convolution(const ConvolutionShape& shape, const Tensor& x,
                                    const ConvolutionWeights& weights,
                                    std::span<const StateSlice> slices, const Tensor& blocks,
                                    const Tensor& out) = 0;
  virtual void do_decay_gates(const Tensor& x, const Tensor& bias, const Tensor& rates,
                              const Tensor& out) = 0;
  virtual void do_delta_rule(const DeltaShape& shape, const DeltaInputs& inputs,
                             std::span<const StateSlice> slices, const Tensor& blocks,
                             const Tensor& out) = 0;
  virtual void do_copy_states(const Tensor& blocks, std::span<const BlockMove> moves) = 0;
};

}  // namespace paceline
