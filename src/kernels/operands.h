// Operands beside tensors: stored keys and values, slices of a batch, parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/operand_span.h"
#include "kernels/packed_matrix.h"
#include "kernels/xielu.h"
#include "tensor/tensor.h"

namespace paceline {
namespace cuda {
struct AttentionRow;  // cuda/code/attention_chunk.h
struct SavePoint;     // cuda/code/state_rows.h
struct StateRows;
}  // namespace cuda

// clamped_swiglu is gpt-oss's: with gate = min(gate, 7) and up within [-7, 7], it is
// gate * sigmoid(1.702 gate) * (up + 1). The others are functions of gate, times up.
enum class Activation : uint8_t { silu, gelu_tanh, gelu_erf, sigmoid, relu, clamped_swiglu };

// Which elements of a head rope rotates together: i and i + half (HF rotate_half), or the
// neighbours 2 i and 2 i + 1 (GPT-J).
enum class RopePairs : uint8_t { halves, neighbours };

// x / sqrt(mean(x^2) + eps) * weight.
struct RmsNormWeights {
  Tensor weight;
  float eps = 0.0f;
};

// What becomes of the heads of queries and keys before attention: the norm of each head, if there
// is one, then the rotation by `rope_table`, if there is one.
struct HeadPlacement {
  std::optional<RmsNormWeights> q_norm{}, k_norm{};  // [head_dim]
  const Tensor* rope_table = nullptr;                // [rows, half, 2]
  RopePairs pairs = RopePairs::halves;
};

// The stored keys and values of one layer. Keys lie transposed inside a block so that neighbouring
// positions are neighbouring lanes.
struct KvStore {
  Tensor keys;    // [num_blocks, kv_heads, head_dim, block_size]; float32, float16, bfloat16, int8
  Tensor values;  // [num_blocks, kv_heads, block_size, head_dim]; empty with values_in_keys
  // With int8 codes alone: an element is its code times the scale of its token and kv head.
  Tensor key_scales{};    // [num_blocks, kv_heads, block_size]
  Tensor value_scales{};  // [num_blocks, kv_heads, block_size]
  // > 0: this many first elements of a key are its value, so they are stored once (latent
  // attention).
  // Their scales are the value's; those of the key are of its other elements.
  int64_t values_in_keys = 0;
  int64_t block_size() const { return keys.size(3); }
  int64_t value_dim() const { return values_in_keys > 0 ? values_in_keys : values.size(3); }
  bool has_scales() const { return keys.dtype() == DType::i8; }
};

// Copies the keys and values of one block to another.
struct BlockMove {
  int32_t from = 0;
  int32_t to = 0;
};

// Rows [first_row, first_row + num_rows) of a batch are consecutive positions of one sequence, from
// first_position on. Position p lives in slot p % block_size of block block_table[p / block_size].
// Entries of blocks that lie wholly before the first row's window are never read.
struct AttentionSlice {
  int64_t first_row = 0;
  int64_t num_rows = 0;
  int64_t first_position = 0;
  std::span<const int32_t> block_table;
};

// After the rows below `position`, a multiple of kStateChunk, a state is written to `block` too.
struct StateSave {
  int64_t position = 0;
  int32_t block = 0;
};

// Rows [first_row, first_row + num_rows) of a batch are consecutive positions of one sequence, from
// first_position on, whose state at the start of the chunk that is open stands in `block`, and what
// follows from that chunk's rows in `open_block`. A slice that begins at position 0 begins without
// a state, and one at a chunk's start without rows, whatever the blocks hold.
struct StateSlice {
  int64_t first_row = 0;
  int64_t num_rows = 0;
  int64_t first_position = 0;
  int32_t block = 0;
  int32_t open_block = 0;
  int64_t first_save = 0;  // among the batch's: in ascending positions, within the slice's rows
  int64_t num_saves = 0;
};
// Slices in a device's memory: row i is slice i's, which has that row or none; the output of one
// that has none is 0. Saves outside of a slice's rows are those of other steps.
struct DeviceStates {
  const cuda::StateRows* slices = nullptr;
  const cuda::SavePoint* saves = nullptr;  // of all slices
};
using StateSliceSpan = OperandSpan<const StateSlice, DeviceStates>;
// The memory of the states of one operation, whose shape has the numbers of elements.
struct StateMemory {
  // [blocks, state_elements], at the starts of the chunks that are open. Those of delta rules and
  // scans are float32 or bfloat16: rounded to nearest, ties to even, whenever a chunk ends.
  Tensor states;
  Tensor open_rows;  // [open blocks, open_elements], what follows from the rows of those chunks
};

struct StateSlices {
  StateSliceSpan slices;
  std::span<const StateSave> saves = {};  // of all slices in the CPU's memory

  std::span<const StateSave> saves_of(const StateSlice& slice) const {
    return saves.subspan(static_cast<size_t>(slice.first_save),
                         static_cast<size_t>(slice.num_saves));
  }
};

// Slices of one row each, in a device's memory.
struct DeviceSlices {
  const cuda::AttentionRow* rows = nullptr;
  const int32_t* tables = nullptr;  // the block tables of all rows
  int64_t most_chunks = 0;          // of keys that a row comes to see
};
using AttentionSlices = OperandSpan<const AttentionSlice, DeviceSlices>;

// What a decoder reads of a batch of rows.
struct BatchArrays {
  // Where keys and values, or states, are stored and read, in the layers of one cache group.
  struct Group {
    Indices<int64_t> slots;  // [rows] flat slot of each row's own key and value
    AttentionSlices slices;
    StateSlices states = {};  // in place of those two, in layers with states
  };
  Indices<int32_t> tokens;            // [rows]
  Indices<int32_t> positions;         // [rows]
  Indices<int32_t> output_rows;       // rows whose hidden states are outputs, in any order
  std::vector<Group> groups;          // one per cache group
  Indices<int32_t> token_types = {};  // [rows], or empty: all are of the first type

  int64_t num_rows() const { return tokens.size(); }
};

// How far rows by distance go on behind their last one, which is read with the rest of a chunk.
inline constexpr int64_t kPositionScorePadding = 64;

// What positions add to the scores of attention before these are scaled. Distances are those of a
// key from its query. With terms of queries or keys, slices are whole sequences.
struct PositionScores {
  Tensor by_distance = {};   // [heads, width()]: that of distance d is at reach + d; empty: none
  bool by_position = false;  // by_distance has that of a key at position p at p instead
  // [rows, heads, buckets]: what the row's query meets at a distance; or empty
  Tensor of_queries = {};
  // The same of the row's key.
  Tensor of_keys = {};
  std::span<const int32_t> buckets = {};  // [width()]: that of each distance, as in by_distance
  int64_t reach = 0;                      // the longest distance of a key in front of its query
  int64_t reach_ahead = 0;                // of one behind it

  int64_t width() const { return reach + reach_ahead + kPositionScorePadding; }
  bool has_distances() const { return by_distance.raw() != nullptr; }
  bool has_query_terms() const { return of_queries.raw() != nullptr; }
  bool has_key_terms() const { return of_keys.raw() != nullptr; }
};

struct AttentionParams {
  float scale = 1.0f;     // multiplies q.k
  float soft_cap = 0.0f;  // > 0: scores become cap * tanh(score / cap)
  int64_t window = 0;     // > 0: position p sees (p - window, p]; 0: all of [0, p]
  bool chunked = false;   // p sees [p - p % window, p] instead (Llama 4)
  // Attention in both directions: p sees (p - window, p + window) of its slice, or all of it. A
  // slice is then a whole sequence, from position 0 on.
  bool bidirectional = false;
  const PositionScores* position_scores = nullptr;  // or none
};

// How pool_rows combines rows: their sum, that of each row times its position + 1, or the largest
// of each column.
enum class RowPooling : uint8_t { sum, weighted_sum, max };

// A feed-forward network: down(activation(gate(x)) * up(x)).
struct GatedMlpWeights {
  Activation activation = Activation::silu;
  PackedColumns gate{};  // [width, k]
  PackedColumns up{};    // [width, k]
  PackedColumns down{};  // [n, width], a whole matrix
};

// One pair of narrow matrices beside a product (Hu et al., "LoRA", 2021), for some rows of a batch
// and some columns of the product.
struct LoraSegment {
  int64_t first_row = 0;
  int64_t num_rows = 0;
  const PackedMatrix* a = nullptr;  // plain [ranks, k]: pairs of one input may be stacked
  int64_t first_rank = 0;           // the pair's first row of `a`
  const PackedMatrix* b = nullptr;  // plain [columns, rank]; it holds the scale
  int64_t first_column = 0;         // of the product
};

}  // namespace paceline
