// KernelTable is what one instruction set provides: single-threaded kernels behind function
// pointers.
#pragma once

#include <cstdint>

#include "base/state_chunk.h"
#include "kernels/cpu/group_task.h"
#include "kernels/packed_layout.h"
#include "kernels/xielu.h"

namespace paceline {

// Indexes the arrays of kernels that differ by element type, in the order of DType.
constexpr int kNumFloatTypes = 3;
constexpr int kNumKvTypes = 4;  // the floats and int8
constexpr int kNumActivations = 6;
constexpr int kNumRopePairs = 2;
constexpr int kNumRoundings = 2;

// Keys per partial result of attention, at absolute positions.
constexpr int64_t kChunkLength = 64;
// Rows and keys of a tile of attention's gradients.
constexpr int64_t kGradientTile = 64;
// Elements of a row that give one partial of log_sum_exp.
constexpr int64_t kRowBlock = 4096;

// What becomes of the outputs that are there: each segment's sum is added to them, or goes on from
// them.
enum class Outputs : uint8_t { replaced, added_to, continued };

// Rows [0, num_rows) times the panels [first_panel, last_panel) of a packed matrix.
struct MatmulTask {
  const void* inputs = nullptr;  // as prepare_row wrote them, [num_rows][input_stride bytes]
  int64_t input_stride = 0;      // bytes
  int64_t num_rows = 0;
  const void* panels = nullptr;  // panel 0 of the matrix
  int64_t panel_elements = 0;
  int64_t n = 0;
  int64_t padded_k = 0;
  int64_t first_panel = 0;
  int64_t last_panel = 0;
  const float* bias = nullptr;  // [n] or nullptr
  float* out = nullptr;         // [num_rows][out_stride]; column 0 is the matrix's
  int64_t out_stride = 0;
  WeightStreams streams;  // of a few rows
  // K is cut at multiples of this, itself a multiple of 32 and at most kSegmentLength.
  int64_t segment_length = kSegmentLength;
  Outputs outputs = Outputs::replaced;
};

// Some panels [k][32] of a packed matrix become panels of its transpose, whose K are the columns:
// num_panels * 32 of them.
struct TransposeTask {
  const void* panels = nullptr;  // the first panel, at its first value of K
  int64_t panel_elements = 0;
  int64_t num_panels = 0;
  int64_t padded_k = 0;  // of those values; the transpose has zero columns up to a multiple of 32
  void* to = nullptr;
  int64_t to_panel_elements = 0;
};

// Some columns of float32 rows.
struct ColumnsTask {
  const float* rows = nullptr;  // at the first column
  int64_t row_stride = 0;       // elements
  int64_t num_rows = 0;
  int64_t num_columns = 0;
  void* to = nullptr;
  int64_t to_stride = 0;  // bytes
};

// Some columns of prepared inputs in bfloat16.
struct InputColumnsTask {
  const void* rows = nullptr;  // at the first column
  int64_t row_stride = 0;      // bytes
  int64_t num_rows = 0;
  int64_t num_columns = 0;
  void* to = nullptr;
  int64_t to_stride = 0;  // bytes
};

// PositionScores of a task: pointers are at its first row and query head; scores of keys, at the
// first key's row.
struct PositionScoreTask {
  const float* by_distance = nullptr;  // of the key at position 0
  int64_t by_distance_stride = 0;      // between heads
  int64_t by_distance_row_step = 1;    // how far a row's is before that of the row before it
  const float* of_queries = nullptr;
  int64_t of_queries_row_stride = 0;
  int64_t of_queries_head_stride = 0;
  const float* of_keys = nullptr;
  int64_t of_keys_row_stride = 0;
  int64_t of_keys_head_stride = 0;
  const int32_t* buckets = nullptr;  // as by_distance
};

// A tile of rows of one sequence on one or more neighbouring kv heads, whose keys lie side by side
// in a block. Each kv head serves `group` query heads. Strides count elements.
struct AttentionTask {
  int64_t head_dim = 0;
  int64_t value_dim = 0;  // of a value and of a head's output
  int64_t num_kv_heads = 0;
  int64_t group = 0;
  int64_t num_rows = 0;
  int64_t first_position = 0;
  const float* q = nullptr;  // the first row's first query head of the task
  int64_t q_row_stride = 0;
  int64_t q_head_stride = 0;
  float* out = nullptr;
  int64_t out_row_stride = 0;
  int64_t out_head_stride = 0;
  float* log_sum_exp = nullptr;  // of the first row and head, or nullptr; heads lie side by side
  int64_t log_sum_exp_stride = 0;
  const void* keys = nullptr;  // block 0 of the first kv head, [head_dim][block_size]
  int64_t key_block_stride = 0;
  int64_t key_head_stride = 0;
  // [block_size][head_dim]; nullptr: values are the first elements of the keys
  const void* values = nullptr;
  int64_t value_block_stride = 0;
  int64_t value_head_stride = 0;
  const float* key_scales = nullptr;    // of int8 keys, [block_size]
  const float* value_scales = nullptr;  // [block_size]
  int64_t scale_block_stride = 0;
  int64_t scale_head_stride = 0;
  int64_t block_size = 0;
  const int32_t* block_table = nullptr;
  float scale = 1.0f;
  float soft_cap = 0.0f;
  int64_t window = 0;
  bool chunked = false;  // windows are chunks, at multiples of their length
  int64_t num_keys = 0;  // > 0: rows see keys behind their own, up to that many in all
  bool has_position_scores = false;
  PositionScoreTask position_scores = {};
  void* scratch = nullptr;  // attention_scratch(...) floats of this thread
};

// Rows of float32 heads, at the first row and head.
struct GradientRows {
  const float* first = nullptr;
  int64_t row_stride = 0;  // elements
  int64_t head_stride = 0;
};

// One sequence on one kv head, which serves `group` query heads. Pointers are at the sequence's
// first row and the first of these heads.
struct AttentionGradientTask {
  int64_t head_dim = 0;
  int64_t group = 0;
  int64_t num_rows = 0;
  GradientRows q, dout;
  GradientRows k, v;
  const float* log_sum_exp = nullptr;  // heads lie side by side
  int64_t log_sum_exp_stride = 0;
  const float* means = nullptr;  // of the gradients of weights: out times dout; heads side by side
  int64_t means_stride = 0;
  float* dq = nullptr;
  int64_t dq_row_stride = 0;
  int64_t dq_head_stride = 0;
  float* dk = nullptr;
  int64_t dk_stride = 0;
  float* dv = nullptr;
  int64_t dv_stride = 0;
  float scale = 1.0f;
  float soft_cap = 0.0f;
  int64_t window = 0;
  void* packed = nullptr;   // AttentionGradientKernels::packed_bytes(...) of this sequence and head
  void* scratch = nullptr;  // AttentionGradientKernels::scratch_floats(...) of this thread
};

// The gradients of attention, in tiles of kGradientTile rows and keys.
struct AttentionGradientKernels {
  // The sum of dout[i] * out[i], with dout as the other kernels read it.
  float (*output_mean)(const float* dout, const float* out, int64_t head_dim);
  // For gradients of up to `key_tiles` tiles of keys at a time.
  int64_t (*scratch_floats)(int64_t head_dim, int64_t key_tiles);
  // Where operands are packed first, all of a task's before its gradients; else nullptr.
  int64_t (*packed_bytes)(const AttentionGradientTask& task);
  void (*pack_keys)(const AttentionGradientTask& task, int64_t tile);
  void (*pack_rows)(const AttentionGradientTask& task, int64_t head, int64_t tile);
  // Writes dk and dv of a tile of keys.
  void (*key_gradients)(const AttentionGradientTask& task, int64_t tile);
  // Writes dq of a tile of rows of one of the group's heads.
  void (*query_gradients)(const AttentionGradientTask& task, int64_t head, int64_t tile);
  // Writes dq, dk and dv, the same bits, in one pass over the scores; or nullptr.
  void (*all_gradients)(const AttentionGradientTask& task);
};

struct GatedGradientTask {
  const float* gate = nullptr;
  const float* up = nullptr;
  const float* dout = nullptr;
  int64_t width = 0;
  float* dgate = nullptr;
  float* dup = nullptr;
};

// One row; `scale` is norm_scale's. `mean` is that of a layer norm's row, 0 in an RMS norm.
struct NormGradientTask {
  const float* x = nullptr;
  float mean = 0.0f;
  const float* weight = nullptr;
  float scale = 0.0f;
  const float* dy = nullptr;
  int64_t width = 0;
  float* dx = nullptr;
};

// One head's keys or values of `count` rows that go to neighbouring slots of one block.
struct StoreTask {
  const float* rows = nullptr;  // [count][row_stride]
  int64_t row_stride = 0;       // elements
  int64_t count = 0;
  int64_t head_dim = 0;
  int64_t block_size = 0;
  void* slot = nullptr;     // the first one
  float* scales = nullptr;  // of int8 codes: [count], the first slot's first
};

// A row of a convolution, from some channel on: the sum of bias and taps[j] * rows[j] in order.
struct ConvolutionTask {
  const float* const* rows = nullptr;  // [num_taps]; nullptr before the sequence
  const float* taps = nullptr;         // [num_taps][taps_stride]
  int64_t taps_stride = 0;
  const float* bias = nullptr;  // or nullptr
  int64_t num_taps = 0;
  int64_t count = 0;  // channels
  float* out = nullptr;
};

// RecurrentOps::decay_gates of a row: out = -rates * min(max(log(1 + exp(x + bias)), low), high).
struct GateTask {
  const float* x = nullptr;
  const float* bias = nullptr;
  const float* rates = nullptr;
  float low = 0.0f, high = 0.0f;
  int64_t width = 0;
  float* out = nullptr;
};

// Where a task writes the state at a position, beside its slice's block.
struct StateCopy {
  int64_t position = 0;
  void* states = nullptr;  // of another block, like the task's
};

// RecurrentOps::selective_scan for a slice's rows on some channels, a multiple of 16 from the first
// one. Pointers are at the first row and the first of these channels; strides count elements.
struct ScanTask {
  int64_t count = 0;  // channels
  int64_t state_size = 0;
  int64_t num_rows = 0;
  int64_t first_position = 0;
  const float* x = nullptr;
  int64_t x_stride = 0;
  const float* steps = nullptr;
  int64_t steps_stride = 0;
  const float* b = nullptr;
  int64_t b_stride = 0;
  const float* c = nullptr;
  int64_t c_stride = 0;
  const float* rates = nullptr;  // [state_size][rates_stride]
  int64_t rates_stride = 0;
  const float* skip = nullptr;
  float* out = nullptr;  // may be x
  int64_t out_stride = 0;
  // Parts of the slice's block, as ScanShape lays them out.
  void* states = nullptr;        // [state_size][kept_stride]
  float* kept_steps = nullptr;   // of each position of the chunk that was open, kept_stride apart;
  float* kept_inputs = nullptr;  // likewise
  int64_t kept_stride = 0;
  const float* kept_b = nullptr;
  int64_t kept_b_stride = 0;
  const StateCopy* saves = nullptr;
  int64_t num_saves = 0;
  float* scratch = nullptr;  // scan_scratch(...) floats of this thread
};

// RecurrentOps::delta_rule for a slice's rows on some value heads of one key head. Pointers are at
// the first row and the first of these heads; strides count elements.
struct DeltaTask {
  bool corrects = true;
  bool channel_decay = false;
  int64_t key_dim = 0, value_dim = 0;
  int64_t padded_key = 0, padded_value = 0;
  int64_t num_heads = 0;
  int64_t num_rows = 0;
  int64_t first_position = 0;
  const float* q = nullptr;
  int64_t q_stride = 0;
  const float* k = nullptr;
  int64_t k_stride = 0;
  const float* v = nullptr;
  int64_t v_stride = 0, v_head_stride = 0;
  const float* log_decay = nullptr;  // heads lie side by side, those of beta too
  int64_t log_decay_stride = 0;
  const float* beta = nullptr;
  int64_t beta_stride = 0;
  const float* skip = nullptr;  // of each head; null: there is none
  float* out = nullptr;
  int64_t out_stride = 0, out_head_stride = 0;
  // Parts of the slice's block, as DeltaShape lays them out.
  void* states = nullptr;       // heads of [key_dim][padded_value]
  const float* keys = nullptr;  // of each position of the chunk that was open, [padded_key], which
  int64_t key_stride = 0;       // are key_stride apart; likewise the others
  float* updates = nullptr;     // heads of [padded_value]
  int64_t update_stride = 0;
  float* decays = nullptr;   // of a head log_decay's sum from the chunk's start; with
  int64_t decay_stride = 0;  // channel_decay its exp, [padded_key]
  const StateCopy* saves = nullptr;
  int64_t num_saves = 0;
  float* scratch = nullptr;  // delta_scratch(...) floats of this thread
};

// RecurrentGradientOps::delta_rule_gradient for a sequence on one value head. Pointers are at the
// first row and this head; strides count elements.
struct DeltaGradientTask {
  bool corrects = true;
  int64_t key_dim = 0, value_dim = 0;
  int64_t num_rows = 0;
  const float* q = nullptr;
  int64_t q_stride = 0;
  const float* k = nullptr;
  int64_t k_stride = 0;
  const float* v = nullptr;
  int64_t v_stride = 0;
  const float* log_decay = nullptr;
  int64_t log_decay_stride = 0;
  const float* beta = nullptr;
  int64_t beta_stride = 0;
  float skip = 0.0f;
  const float* dout = nullptr;
  int64_t dout_stride = 0;
  bool adds_keys = false;  // to the dq and dk that are there
  float* dq = nullptr;
  int64_t dq_stride = 0;
  float* dk = nullptr;
  int64_t dk_stride = 0;
  float* dv = nullptr;
  int64_t dv_stride = 0;
  float* dlog_decay = nullptr;
  int64_t dlog_decay_stride = 0;
  float* dbeta = nullptr;
  int64_t dbeta_stride = 0;
  float* scratch = nullptr;  // delta_gradient_scratch(...) floats of this thread
};

// RecurrentGradientOps::selective_scan_gradient for a sequence on some channels. Pointers are at
// the first row and the first of these channels; strides count elements.
struct ScanGradientTask {
  int64_t count = 0;
  int64_t state_size = 0;
  int64_t num_rows = 0;
  const float* x = nullptr;
  int64_t x_stride = 0;
  const float* steps = nullptr;
  int64_t steps_stride = 0;
  const float* b = nullptr;
  int64_t b_stride = 0;
  const float* c = nullptr;
  int64_t c_stride = 0;
  const float* rates = nullptr;  // [state_size][rates_stride]
  int64_t rates_stride = 0;
  const float* skip = nullptr;
  const float* dout = nullptr;
  int64_t dout_stride = 0;
  float* dx = nullptr;
  int64_t dx_stride = 0;
  float* dsteps = nullptr;
  int64_t dsteps_stride = 0;
  float* db = nullptr;  // sums over these channels, [num_rows][state_size]
  float* dc = nullptr;
  float* dlog_rates = nullptr;  // [state_size][count], or null
  float* scratch = nullptr;     // scan_gradient_scratch(...) floats of this thread
};

// RecurrentGradientOps::decay_gates_gradient of a row; the slope is 0 where x + bias is outside
// [low, high].
struct GateGradientTask {
  const float* x = nullptr;
  const float* bias = nullptr;
  const float* rates = nullptr;
  float low = 0.0f, high = 0.0f;
  const float* dout = nullptr;
  int64_t width = 0;
  float* dx = nullptr;
};

struct NormRow {
  float mean = 0.0f;
  float scale = 0.0f;  // 1 / sqrt(variance + eps)
};

// Of a row or a part of it: the maximum and the sum of exp(x - maximum).
struct ExpSum {
  float max = 0.0f;
  float sum = 0.0f;
};

// Reads a buffer once. The result only keeps the compiler from dropping the reads.
struct ReadKernel {
  int vector_bits = 0;  // of a load; 0: there is no such kernel
  int streams = 0;      // read side by side
  int32_t (*run)(const void* from, int64_t bytes) = nullptr;
};
constexpr int kNumReadKernels = 8;

struct KernelTable {
  // Each weight type has a form of inputs: [padded_k] elements of this size.
  int64_t input_bytes[kNumFloatTypes];
  void (*prepare_row[kNumFloatTypes])(const float* x, int64_t k, int64_t padded_k, void* input);
  void (*matmul[kNumFloatTypes])(const MatmulTask& task);
  // The rows of a block of many rows in tile registers; 0: the kernel has none.
  int64_t tile_rows[kNumFloatTypes];
  // How many panels a product of `num_rows` rows may read side by side; 0: it ignores
  // MatmulTask::streams.
  int64_t (*stream_panels[kNumFloatTypes])(int64_t num_rows);
  // Panels of float16 become those of float32, which have the same products.
  void (*transpose_panels[kNumFloatTypes])(const TransposeTask& task);
  // Makes columns of rows the prepared inputs of a product whose K are the rows, as prepare_row
  // would of the transpose: to[column][row], with zeros up to a line. There is none for float16.
  void (*prepare_columns[kNumFloatTypes])(const ColumnsTask& task);
  // The same of rows that prepare_row made inputs of bfloat16, up to 16 columns behind the task's
  // included; nullptr where such inputs are float32.
  void (*transpose_inputs)(const InputColumnsTask& task);
  // Makes up to 32 columns a panel whose K are the rows, as pack_matrix would of their transpose;
  // there is none for float16.
  void (*pack_columns[kNumFloatTypes])(const ColumnsTask& task);
  // Makes up to 32 rows a panel whose K are the columns, as pack_matrix would of them; likewise.
  void (*pack_rows[kNumFloatTypes])(const ColumnsTask& task);

  // Quantised weights. A row of inputs takes quantized_row_bytes. quantize_row writes its part for
  // elements [first, first + count), whole multiples of input_length that begin at `x`;
  // prefetch_row prefetches that part of a row. expand_panel writes values [first, first + count)
  // of K, whole records, of the panel that pack_matrix would make of the weights in bfloat16.
  int64_t (*quantized_row_bytes)(const GroupPanels& weights);
  void (*quantize_row)(const float* x, const GroupPanels& weights, int64_t first, int64_t count,
                       void* input);
  void (*prefetch_row)(const GroupPanels& weights, int64_t first, int64_t count, void* input);
  void (*matmul_groups)(const GroupTask& task);
  int64_t (*group_stream_panels)(const GroupPanels& weights, int64_t num_rows);
  int64_t (*group_scratch_bytes)(const GroupPanels& weights);  // GroupTask::scratch
  void (*expand_panel)(const GroupPanels& weights, int64_t panel, int64_t first, int64_t count,
                       void* bf16_panel);
  void (*embedding_groups)(const GroupPanels& weights, int64_t row, float scale, float* out);
  // Products of E4M3 with up to float8_rows rows, prepared as those of bfloat16 are, with the bits
  // of its expanded panels; without scratch.
  void (*matmul_float8)(const GroupTask& task);
  int64_t float8_rows;
  int64_t (*float8_stream_panels)(int64_t num_rows);

  // out = column `column` (0 to 31) of a panel times scale.
  void (*embedding[kNumFloatTypes])(const void* panel, int64_t column, int64_t k, float scale,
                                    float* out);

  void (*rms_norm)(const float* x, const float* weight, float eps, int64_t width, float* out);
  // `bias` may be nullptr.
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float eps,
                     int64_t width, float* out);
  void (*rope_table)(float position, const float* inv_freq, int64_t half, float scale,
                     float* table);
  void (*rope[kNumRopePairs])(const float* table, int64_t half, float* head);

  void (*store_keys[kNumKvTypes])(const StoreTask& task);
  void (*store_values[kNumKvTypes])(const StoreTask& task);

  // Floats of scratch for a task, and for the partial results of one of its chunks.
  int64_t (*attention_scratch)(const AttentionTask& task);
  int64_t (*attention_partial)(const AttentionTask& task);
  // The chunks that any row of a task sees.
  int64_t (*attention_num_chunks)(const AttentionTask& task);
  // A whole task.
  void (*attention[kNumKvTypes])(const AttentionTask& task);
  // The same in two steps: the partials of chunks [first, last), one after another, then the
  // combination of those of all chunks.
  void (*attention_chunks[kNumKvTypes])(const AttentionTask& task, int64_t first, int64_t last,
                                        float* partials);
  void (*attention_combine)(const AttentionTask& task, const float* partials);
  // Those two where values are a part of their keys.
  void (*shared_attention[kNumKvTypes])(const AttentionTask& task);
  void (*shared_attention_chunks[kNumKvTypes])(const AttentionTask& task, int64_t first,
                                               int64_t last, float* partials);

  AttentionGradientKernels attention_gradients[kNumRoundings];  // by OperandRounding

  void (*gated_activation[kNumActivations])(const float* gate, const float* up, int64_t width,
                                            float* out);
  // Of one input; none for Activation::clamped_swiglu, which needs two.
  void (*activation[kNumActivations])(const float* x, int64_t width, float* out);
  void (*xielu)(const float* x, const XieluWeights& weights, int64_t width, float* out);
  void (*clamp)(const float* x, float limit, int64_t width, float* out);
  void (*scale)(const float* x, float factor, int64_t width, float* out);
  void (*add)(const float* x, const float* y, int64_t width, float* out);
  void (*soft_cap)(const float* x, float cap, int64_t width, float* out);

  ExpSum (*exp_sum)(const float* x, int64_t width);
  ExpSum (*combine_exp_sums)(const ExpSum* parts, int64_t count);
  // log(total.sum) + total.max
  float (*log_sum)(ExpSum total);

  void (*convolve)(const ConvolutionTask& task);
  void (*decay_gates)(const GateTask& task);
  void (*multiply)(const float* x, const float* y, int64_t width, float* out);
  void (*delta_rule)(const DeltaTask& task);       // states in float32
  void (*delta_rule_bf16)(const DeltaTask& task);  // in bfloat16
  int64_t (*delta_scratch)(int64_t padded_key, int64_t padded_value);
  void (*selective_scan)(const ScanTask& task);       // states in float32
  void (*selective_scan_bf16)(const ScanTask& task);  // in bfloat16
  int64_t (*scan_scratch)(int64_t state_size);
  void (*decay_gates_gradient)(const GateGradientTask& task);
  void (*delta_rule_gradient)(const DeltaGradientTask& task);
  void (*selective_scan_gradient)(const ScanGradientTask& task);
  int64_t (*scan_gradient_scratch)(int64_t state_size, int64_t num_rows);
  int64_t (*delta_gradient_scratch)(int64_t key_dim, int64_t value_dim, int64_t num_rows);

  void (*softmax)(const float* x, int64_t width, float* out);  // of finite numbers
  void (*sigmoid)(const float* x, int64_t width, float* out);

  void (*gated_gradient[kNumActivations])(const GatedGradientTask& task);
  void (*soft_cap_gradient)(const float* x, float cap, const float* dy, int64_t width, float* dx);
  // 1 / sqrt(mean(x^2) + eps)
  float (*norm_scale)(const float* x, float eps, int64_t width);
  void (*rms_norm_gradient)(const NormGradientTask& task);
  NormRow (*layer_norm_row)(const float* x, float eps, int64_t width);
  void (*layer_norm_gradient)(const NormGradientTask& task);
  void (*activation_gradient[kNumActivations])(const float* x, const float* dout, int64_t width,
                                               float* dx);
  // sums += (x - mean) * scale * dy
  void (*add_norm_weights)(const float* x, float mean, float scale, const float* dy, int64_t width,
                           float* sums);
  // sums += x * scale
  void (*add_scaled)(const float* x, float scale, int64_t width, float* sums);
  // logits = exp(logits - log_sum) * weight; that of the target has 1 less before the weight.
  void (*cross_entropy_gradient)(float* logits, int64_t width, float log_sum, float weight);
  float (*target_gradient)(float logit, float log_sum, float weight);

  // For the roofline: several ways to read memory, as the fastest differs by processor, and
  // register-only runs of the instructions of products. The runs return a value that keeps the
  // compiler from dropping the work.
  ReadKernel reads[kNumReadKernels];
  float (*run_bf16)(int64_t iterations, float seed);
  float (*run_f32)(int64_t iterations, float seed);
  float (*run_int8)(int64_t iterations, float seed);
  int64_t run_bf16_flops;  // of one iteration
  int64_t run_int8_ops;
  int64_t run_f32_flops;
};

}  // namespace paceline
