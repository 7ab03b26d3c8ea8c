// RecurrentOps is every operation of layers whose memory of a sequence is a state, which advances
// with its positions, instead of keys and values.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "base/state_chunk.h"
#include "kernels/operands.h"
#include "tensor/tensor.h"

namespace paceline {

// A sequence has a block with the state at the start of the chunk that is open, and one with what
// follows from the rows of that chunk. Rows may be computed anew as long as their chunk is open:
// then their sequence goes on as if they hadn't been. Rows are padded to whole lines of 16
// elements.
struct DeltaShape {
  int64_t key_heads = 0;
  int64_t value_heads = 0;  // a multiple of key_heads: neighbours share keys and queries
  int64_t key_dim = 0;
  int64_t value_dim = 0;
  bool corrects = true;        // false: each row adds its value whatever the state has for its key
  bool channel_decay = false;  // a decay for each element of a key, instead of one a head

  int64_t padded_key() const { return padded(key_dim); }
  int64_t padded_value() const { return padded(value_dim); }
  // Of a state, [value_heads, key_dim, padded_value].
  int64_t state_elements() const { return value_heads * key_dim * padded_value(); }
  // Where the parts of a block of open rows begin, in elements: keys [key_heads, padded_key] of
  // each position of a chunk, then updates [value_heads, padded_value] and decays [value_heads,
  // padded_decay].
  int64_t updates_begin() const { return kStateChunk * key_heads * padded_key(); }
  int64_t decays_begin() const {
    return updates_begin() + kStateChunk * value_heads * padded_value();
  }
  int64_t open_elements() const {
    return decays_begin() + kStateChunk * value_heads * padded_decay();
  }
  // Decays of a head: those of a row, and as open rows have them.
  int64_t head_decays() const { return channel_decay ? key_dim : 1; }
  int64_t padded_decay() const { return channel_decay ? padded_key() : 1; }
  int64_t decay_width() const { return value_heads * head_decays(); }

  static constexpr int64_t padded(int64_t elements) { return (elements + 15) / 16 * 16; }
};

// Queries, keys, values and gates of a batch's rows.
struct DeltaInputs {
  Tensor q, k;                   // [rows, key_heads, key_dim]
  Tensor v;                      // [rows, value_heads, value_dim]
  Tensor log_decay;              // [rows, value_heads * head_decays], at most 0
  Tensor beta;                   // [rows, value_heads]
  const Tensor* skip = nullptr;  // [value_heads]: the share of its own value in a row's output
};

// The state of each channel decays element by element: [state_size, padded channels]. Open rows are
// of each position of the chunk the steps and the stepped inputs of channels, [padded channels]
// each, and b, [padded state_size].
struct ScanShape {
  int64_t channels = 0;
  int64_t state_size = 0;

  int64_t padded_channels() const { return DeltaShape::padded(channels); }
  int64_t padded_state() const { return DeltaShape::padded(state_size); }
  int64_t state_elements() const { return state_size * padded_channels(); }
  // Where the parts of a block of open rows begin, in elements; steps are the first.
  int64_t inputs_begin() const { return kStateChunk * padded_channels(); }
  int64_t b_begin() const { return inputs_begin() + kStateChunk * padded_channels(); }
  int64_t open_elements() const { return b_begin() + kStateChunk * padded_state(); }
};

struct ScanInputs {
  Tensor x;      // [rows, channels]
  Tensor steps;  // [rows, channels], at least 0
  Tensor b, c;   // [rows, state_size]
  Tensor rates;  // [state_size, channels], of decay
  Tensor skip;   // [channels]: the share of its own x in a row's output
};

// Bounds of a gate before its rate.
struct GateRange {
  float low = 0.0f;
  float high = std::numeric_limits<float>::infinity();

  bool operator==(const GateRange&) const = default;
};

// A state is the last inputs before the chunk that is open, [taps - 1, padded channels]; open rows
// are the inputs of each position of the chunk, [kStateChunk, padded channels].
struct ConvolutionShape {
  int64_t channels = 0;
  int64_t taps = 0;

  int64_t padded() const { return DeltaShape::padded(channels); }
  int64_t state_elements() const { return (taps - 1) * padded(); }
  int64_t open_elements() const { return kStateChunk * padded(); }
  // Where a state has the inputs of `position`, before the chunk that begins at `chunk`.
  int64_t state_begin(int64_t chunk, int64_t position) const {
    return (position - chunk + taps - 1) * padded();
  }
  // Where open rows have those of a position of the chunk.
  int64_t open_begin(int64_t chunk, int64_t position) const {
    return (position - chunk) * padded();
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
  //                                       x, out [rows, channels]
  void short_convolution(const ConvolutionShape& shape, const Tensor& x,
                         const ConvolutionWeights& weights, const StateSlices& slices,
                         const StateMemory& memory, const Tensor& out);

  // out = -rates * log(1 + exp(x + bias)), the logarithm within `range`: the gates of decay of
  // Mamba (Gu and Dao, 2023) and of gated delta rules.
  //                                       x, out [rows, heads], bias, rates [heads]
  void decay_gates(const Tensor& x, const Tensor& bias, const Tensor& rates, const GateRange& range,
                   const Tensor& out);

  // out = x * y, in place.                x, y, out [rows, width]
  void multiply(const Tensor& x, const Tensor& y, const Tensor& out);

  // The gated delta rule (Yang, Kautz, Hatamizadeh, "Gated Delta Networks", 2024), by chunks (Yang
  // et al., "Parallelizing Linear Transformers with the Delta Rule", 2024) of kStateChunk absolute
  // positions. With S the state at a chunk's start and G the log decays summed from there, row i is
  //   u_i = beta_i (v_i - exp(G_i) S^T k_i - sum over j < i of exp(G_i - G_j) (k_j . k_i) u_j)
  //   out_i = exp(G_i) S^T q_i + sum over j <= i of exp(G_i - G_j) (k_j . q_i) u_j
  // and the chunk's end, of last row n, has exp(G_n) S + sum over j of exp(G_n - G_j) k_j u_j^T.
  // Without corrections u_i = beta_i v_i, which is Mamba 2's state-space duality (Dao and Gu, 2024)
  // with its C, B, x and dt as q, k, v and beta. With channel_decay (Moonshot AI, "Kimi Linear",
  // 2025) G has an element for each of a key's, and a factor exp(G) stands at the element of q, k_i
  // or k_j that it belongs to. Where states are bfloat16, the chunk's end is
  // rounded, and S is what that left.
  //                                       out [rows, value_heads, value_dim]
  void delta_rule(const DeltaShape& shape, const DeltaInputs& inputs, const StateSlices& slices,
                  const StateMemory& memory, const Tensor& out);

  // Mamba's selective scan (Gu and Dao, "Mamba", 2023). Of each channel, row by row,
  //   S = exp(-rates * step) S + (step x) b,  out = S c + skip x
  // The state at a chunk's start is stepped over the chunk's earlier rows anew, so that these may
  // be taken back. States that are bfloat16 are rounded where a chunk ends, and go on from there.
  //                                       x, out [rows, channels], which may be x
  void selective_scan(const ScanShape& shape, const ScanInputs& inputs, const StateSlices& slices,
                      const StateMemory& memory, const Tensor& out);

  // Copies whole blocks, in this order.   blocks [blocks, elements]
  void copy_states(const Tensor& blocks, std::span<const BlockMove> moves);

 private:
  virtual void do_short_convolution(const ConvolutionShape& shape, const Tensor& x,
                                    const ConvolutionWeights& weights, const StateSlices& slices,
                                    const StateMemory& memory, const Tensor& out) = 0;
  virtual void do_decay_gates(const Tensor& x, const Tensor& bias, const Tensor& rates,
                              const GateRange& range, const Tensor& out) = 0;
  virtual void do_multiply(const Tensor& x, const Tensor& y, const Tensor& out) = 0;
  virtual void do_delta_rule(const DeltaShape& shape, const DeltaInputs& inputs,
                             const StateSlices& slices, const StateMemory& memory,
                             const Tensor& out) = 0;
  virtual void do_selective_scan(const ScanShape& shape, const ScanInputs& inputs,
                                 const StateSlices& slices, const StateMemory& memory,
                                 const Tensor& out) = 0;
  virtual void do_copy_states(const Tensor& blocks, std::span<const BlockMove> moves) = 0;
};

}  // namespace paceline
