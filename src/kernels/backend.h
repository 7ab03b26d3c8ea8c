// Backend is every operation a decoder needs, on one device: a checked front door, then the
// device's own.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/operands.h"
#include "kernels/routing.h"
#include "tensor/tensor.h"

namespace paceline {

class DecodeSlots;
class GradientOps;
class RecurrentGradientOps;
class RecurrentOps;
struct DecodeShape;
class RowSampler;

// The largest shapes that a backend's operations take.
struct BackendLimits {
  static constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  int64_t head_dim = kAny;      // of attention
  bool values_in_keys = true;   // attention takes KvStore::values_in_keys
  bool position_scores = true;  // and AttentionParams::position_scores
  bool chunks = true;           // and AttentionParams::chunked
  bool mixed_layers = true;     // layers may have heads of other sizes, and read others' keys
  int64_t state_keys = kAny;    // elements of a key of a layer with a state
  bool channel_decay = true;    // of delta rules
  int64_t scan_states = kAny;   // elements of a channel's state in a selective scan
  int64_t num_experts = kAny;   // of a mixture
  bool xielu = true;            // Backend::xielu
  bool clamp = true;            // Backend::clamp
  bool sparse_mixer = true;     // ExpertScore::sparse_mixer
  // All that train/ does; else LoRA, moved by AdamW, beside the weights of decoders without
  // mixtures, states and sinks.
  bool all_training = true;
  int64_t gradient_head_dim = kAny;  // of attention that is trained
};

// Activations, logits, keys and values, packed matrices and vectors of weights live in memory().
// Only these operations read and write them: the CPU may have no access. Spans, and tensors of
// checkpoints, are in the CPU's memory; an OperandSpan says in which it is.
//
// Shapes are checked by name in the front door; a mismatch is a bug of the program. Inputs have a
// contiguous last dimension and any strides before it; `out` may be the input where a line says
// "in place". Activations and outputs are float32. Every output element is a fixed sequence of
// floating-point operations on its own row (in attention: its own sequence), so neither the number
// of rows, their split into calls, nor the thread count changes a bit. One thread at a time may
// call a Backend.
class Backend {
 public:
  virtual ~Backend() = default;

  // E.g. "cpu/avx512bf16"; part of the system fingerprint.
  virtual std::string_view name() const = 0;
  // Choices made by measurement so far, with the measurements, a line each.
  virtual std::vector<std::string> measured_choices() const { return {}; }
  virtual BackendLimits limits() const { return {}; }
  // Its tensors are allocated from it.
  virtual Memory& memory() = 0;
  // Of tensors that the CPU reads and writes.
  virtual Memory& host_memory() { return memory(); }
  bool has_host_memory() { return &memory() == &host_memory(); }
  // The operations of training (gradients.h). A backend without them aborts.
  virtual GradientOps& gradients();
  // The operations of recurrent layers (recurrent.h).
  virtual RecurrentOps* recurrent() = 0;
  // Those of their backward pass (recurrent_gradients.h); nullptr where there are none.
  virtual RecurrentGradientOps* recurrent_gradients() { return nullptr; }
  // Draws tokens where the logits are (row_sampler.h); nullptr where sampling/Sampler does, on rows
  // that are read.
  virtual RowSampler* row_sampler() { return nullptr; }

  // nullptr where the CPU has to begin each step, as it does by default.
  virtual std::unique_ptr<DecodeSlots> make_decode_slots(const DecodeShape& shape);

  // The elements of x where the CPU can read them: x's own, or a copy in `staging`. Valid until
  // either is written.                    x contiguous float32 of any shape
  std::span<const float> read(const Tensor& x, std::vector<float>& staging);

  // out = elements.                       out contiguous float32 of any shape
  void write(std::span<const float> elements, const Tensor& out);

  // Stacks `parts` into one matrix of sum(Ni) outputs, converted to `dtype`.
  //                                       parts [Ni, k] of any float dtype, rows contiguous
  PackedMatrix pack_matrix(std::span<const Tensor> parts, DType dtype);

  // Stacks quantised parts likewise.      parts [Ni, k], all of one grouping
  PackedMatrix pack_groups(std::span<const GroupedRows* const> parts, ActivationType activations);

  // The listed columns as a matrix of their own; products with it have the same bits.
  //                                       columns in [0, matrix.n)
  PackedMatrix gather_columns(const PackedMatrix& matrix, std::span<const int32_t> columns);

  // out[i] = x[rows[i]].                  x [any, width], out [rows, width], no part of x
  void gather_rows(const Tensor& x, Indices<int32_t> rows, const Tensor& out);

  // out = 0.                              out [rows, width]
  void clear(const Tensor& out);

  // out[rows[i]] += weights[i] * x[i]: multiply-adds in ascending order of i, as in mix_experts.
  //                            x [rows, width], weights [rows], out [any, width], no part of x
  void add_scaled_rows(const Tensor& x, std::span<const int32_t> rows,
                       std::span<const float> weights, const Tensor& out);

  // out[r] = 1 when every element of x[r] is finite, else 0.    x [rows, width], out [rows]
  void finite_rows(const Tensor& x, RowFlags out);

  // Combines the rows of x, at positions first_position and following, with `pooled`, one after
  // another and in double: calls for parts of the rows, in order, give the bits of one call.
  //                                       x [rows, width], pooled [width]
  void pool_rows(RowPooling how, const Tensor& x, int64_t first_position, std::span<double> pooled);

  // Copies the keys and values of whole blocks, with their scales, in this order.
  void copy_blocks(const KvStore& store, std::span<const BlockMove> moves);

  // out[r] = row ids[r] of table * scale.         table [vocab, hidden], ids [rows], out [rows,
  // hidden]
  void embedding(const PackedMatrix& table, Indices<int32_t> ids, float scale, const Tensor& out);

  // out = x * w^T + bias; x is rounded to bfloat16 first when w is bfloat16, and to the
  // ActivationType of quantised weights.
  //                                     x [rows, k], w [n, k], bias [n] or nullptr, out [rows, n]
  void matmul(const Tensor& x, const PackedMatrix& w, const Tensor* bias, const Tensor& out);

  // out = (activation(x * gate^T + bias) * (x * up^T + bias)) * down^T + bias, in place. The bits
  // are those of matmul, gated_activation and matmul, but it needs no room for [rows, width].
  //                                                      x [rows, k], out [rows, n]
  void gated_mlp(const GatedMlpWeights& mlp, const Tensor& x, const Tensor& out);

  // Chooses each row's experts and writes them in ascending order. The choice is by score plus
  // `choice_bias`, the weights are made of the scores alone. A row with a logit that isn't finite
  // gets weights of NaN.
  //                                       logits [rows, params.num_logits()], choice_bias
  // [num_experts] or nullptr, out [rows, params.num_slots()]
  void route(const Tensor& logits, const RoutingParams& params, const Tensor* choice_bias,
             const Routing& out);

  // The choice in the CPU's memory.       routing [rows, slots]
  HostRouting read_routing(const Routing& routing);

  // out[r] = the sum of weight * (gated_mlp of x[r] with the slot's expert) over the slots of row
  // r: multiply-adds from zero in their order, in place. Only experts that a row has are read, so
  // check_experts() has checked the shapes of all.
  //                                       x [rows, k], routing [rows, slots], out [rows, n]
  void mix_experts(std::span<const GatedMlpWeights> experts, const Routing& routing,
                   const Tensor& x, const Tensor& out);
  // Checks that every expert takes rows of the first one's k and gives rows of its n, with a width
  // of its own. To be called once: reading the shapes of all takes as long as some products.
  static void check_experts(std::span<const GatedMlpWeights> experts);

  // out[rows, columns] += (x[rows] * a^T) * b^T for each segment, with the bits of two matmuls and
  // an add on its rows alone. Segments are sorted: each begins behind the rows of the one before
  // it, or has the same rows and begins behind its columns. A rank is at most kSegmentLength.
  //                                       x [rows, k], out [rows, n], no part of x
  void add_lora(const Tensor& x, std::span<const LoraSegment> segments, const Tensor& out);

  // out = x / sqrt(mean(x^2) + eps) * weight, in place.    x, out [..., width] (rank 2 or 3),
  // weight [width]
  void rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out);

  // residual += branch, or its rms_norm where there is a branch_norm; then out =
  // rms_norm(residual). The bits are those of single operations; out may be branch.
  //                                       residual, branch, out [rows, width]
  void add_rms_norm(const Tensor& residual, const Tensor& branch, const RmsNormWeights* branch_norm,
                    const RmsNormWeights& norm, const Tensor& out);

  // out = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * weight + bias, in place.
  //                                       like rms_norm; bias [width] or nullptr
  void layer_norm(const Tensor& x, const Tensor& weight, const Tensor* bias, float eps,
                  const Tensor& out);

  // table[r, i] = {cos, sin}(positions[r] * inv_freq[i]) * scale. With the positions negated it
  // holds the same cosines and the negated sines: rope with it is the gradient of rope.
  //                                       inv_freq [half], table [rows, half, 2]
  void rope_table(Indices<int32_t> positions, const Tensor& inv_freq, float scale,
                  const Tensor& table);

  // Rotates each pair of elements of x by table[r, i], in place; elements from 2 * half on stay as
  // they are.                             x [rows, heads, head_dim], table [rows, half, 2]
  void rope(const Tensor& table, RopePairs pairs, const Tensor& x);

  // Writes row r's keys and values to flat slot slots[r] (= block * block_size + offset), rounded
  // to the store's dtype. In int8 the scale of a row's head is its largest magnitude / 127, and
  // codes are elements / scale, ties to even (a scale that underflows to 0 has codes 0); where an
  // element isn't finite the scale is NaN. With KvStore::values_in_keys v isn't read.
  //                                       k, v [rows, kv_heads, head_dim], slots [rows]
  void store_kv(const Tensor& k, const Tensor& v, Indices<int64_t> slots, const KvStore& store);

  // q and k become what `placement` says, q in place; then store_kv of k and v. The bits are those
  // of single operations; what k holds afterwards is undefined.
  //                                       q [rows, heads, head_dim], k, v, slots like store_kv
  void place_heads(const HeadPlacement& placement, const Tensor& q, const Tensor& k,
                   const Tensor& v, Indices<int64_t> slots, const KvStore& store);

  // out[r, h] = softmax(scale * (q[r, h] . K + position scores)) V over the keys that row r may
  // see, in chunks of 64 positions (GPU: 128) combined in position order, in place. K and V are
  // read as stored; the slices' own keys must be stored already. Head h reads kv head h / (heads /
  // kv_heads). Where there is a log_sum_exp, it becomes the log of the sum of exp(score), with no
  // other bit of out.
  //                                       q [rows, heads, head_dim], out [rows, heads, value_dim],
  // log_sum_exp [rows, heads]
  void attention(const Tensor& q, const KvStore& store, const AttentionSlices& slices,
                 const AttentionParams& params, const Tensor& out,
                 const Tensor* log_sum_exp = nullptr);

  // Adds to each head's softmax a score that has no value (an attention sink: Xiao et al., 2023;
  // gpt-oss): out[r, h] *= exp(log_sum_exp[r, h]) / (exp(log_sum_exp[r, h]) + exp(sinks[h])), of
  // what attention() wrote.
  //                                       log_sum_exp [rows, heads], sinks [heads], out [rows,
  // heads, head_dim]
  void apply_sinks(const Tensor& log_sum_exp, const Tensor& sinks, const Tensor& out);

  // out = activation(gate) * up.          gate, up, out [rows, width]; out may be gate or up
  void gated_activation(Activation kind, const Tensor& gate, const Tensor& up, const Tensor& out);

  // out = activation(x), in place.        x, out [rows, width]
  void activation(Activation kind, const Tensor& x, const Tensor& out);

  // out[r] = x[r] * factors[r], in place; one factor is that of all rows.
  //                                       x, out [rows, width], factors [rows] or [1]
  void scale(const Tensor& x, std::span<const float> factors, const Tensor& out);

  // out[r, i] = x[r, i] * factors[i], in place.
  //                                       x, out [rows, width], factors [width]
  void scale_columns(const Tensor& x, const Tensor& factors, const Tensor& out);

  // out = max(x - mean(x) - deviations * sqrt(variance(x)), 0) of each row; out may be x. Of
  // normally distributed elements it keeps a fixed share, the largest.        x, out [rows, width]
  void gaussian_top_k(const Tensor& x, float deviations, const Tensor& out);

  // XieluWeights of each element, in place.        x, out [rows, width]
  void xielu(const Tensor& x, const XieluWeights& weights, const Tensor& out);

  // Elements below -limit become that, those above limit become it, in place. NaN stays NaN.
  //                                       x, out [rows, width]
  void clamp(const Tensor& x, float limit, const Tensor& out);

  // out = x + y, in place.                x, y, out [rows, width]
  void add(const Tensor& x, const Tensor& y, const Tensor& out);

  // out = cap * tanh(x / cap), in place.  x, out [rows, width]
  void soft_cap(const Tensor& x, float cap, const Tensor& out);

  // out[r] = log(sum(exp(x[r]))).         x [rows, width], out [rows]
  void log_sum_exp(const Tensor& x, std::span<float> out);

 protected:
  // By default by do_rms_norm and do_add.
  virtual void do_add_rms_norm(const Tensor& residual, const Tensor& branch,
                               const RmsNormWeights* branch_norm, const RmsNormWeights& norm,
                               const Tensor& out);
  // By default by do_rms_norm, do_rope and do_store_kv.
  virtual void do_place_heads(const HeadPlacement& placement, const Tensor& q, const Tensor& k,
                              const Tensor& v, Indices<int64_t> slots, const KvStore& store);

 private:
  virtual std::span<const float> do_read(const Tensor& x, std::vector<float>& staging) = 0;
  virtual void do_write(std::span<const float> elements, const Tensor& out) = 0;
  virtual PackedMatrix do_pack_matrix(std::span<const Tensor> parts, DType dtype) = 0;
  virtual PackedMatrix do_pack_groups(std::span<const GroupedRows* const> parts,
                                      ActivationType activations) = 0;
  virtual PackedMatrix do_gather_columns(const PackedMatrix& matrix,
                                         std::span<const int32_t> columns) = 0;
  virtual void do_gather_rows(const Tensor& x, Indices<int32_t> rows, const Tensor& out) = 0;
  virtual void do_clear(const Tensor& out) = 0;
  virtual void do_add_scaled_rows(const Tensor& x, std::span<const int32_t> rows,
                                  std::span<const float> weights, const Tensor& out) = 0;
  virtual void do_finite_rows(const Tensor& x, RowFlags out) = 0;
  virtual void do_pool_rows(RowPooling how, const Tensor& x, int64_t first_position,
                            std::span<double> pooled) = 0;
  virtual void do_copy_blocks(const KvStore& store, std::span<const BlockMove> moves) = 0;
  virtual void do_embedding(const PackedMatrix& table, Indices<int32_t> ids, float scale,
                            const Tensor& out) = 0;
  virtual void do_matmul(const Tensor& x, const PackedMatrix& w, const Tensor* bias,
                         const Tensor& out) = 0;
  virtual void do_gated_mlp(const GatedMlpWeights& mlp, const Tensor& x, const Tensor& out) = 0;
  virtual void do_route(const Tensor& logits, const RoutingParams& params,
                        const Tensor* choice_bias, const Routing& out) = 0;
  virtual HostRouting do_read_routing(const Routing& routing) = 0;
  virtual void do_mix_experts(std::span<const GatedMlpWeights> experts, const Routing& routing,
                              const Tensor& x, const Tensor& out) = 0;
  virtual void do_add_lora(const Tensor& x, std::span<const LoraSegment> segments,
                           const Tensor& out) = 0;
  virtual void do_rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out) = 0;
  virtual void do_layer_norm(const Tensor& x, const Tensor& weight, const Tensor* bias, float eps,
                             const Tensor& out) = 0;
  virtual void do_rope_table(Indices<int32_t> positions, const Tensor& inv_freq, float scale,
                             const Tensor& table) = 0;
  virtual void do_rope(const Tensor& table, RopePairs pairs, const Tensor& x) = 0;
  virtual void do_store_kv(const Tensor& k, const Tensor& v, Indices<int64_t> slots,
                           const KvStore& store) = 0;
  virtual void do_attention(const Tensor& q, const KvStore& store, const AttentionSlices& slices,
                            const AttentionParams& params, const Tensor& out,
                            const Tensor* log_sum_exp) = 0;
  virtual void do_apply_sinks(const Tensor& log_sum_exp, const Tensor& sinks,
                              const Tensor& out) = 0;
  virtual void do_gated_activation(Activation kind, const Tensor& gate, const Tensor& up,
                                   const Tensor& out) = 0;
  virtual void do_activation(Activation kind, const Tensor& x, const Tensor& out) = 0;
  virtual void do_scale(const Tensor& x, std::span<const float> factors, const Tensor& out) = 0;
  virtual void do_add(const Tensor& x, const Tensor& y, const Tensor& out) = 0;
  // Aborts where BackendLimits::mixed_layers is false.
  virtual void do_scale_columns(const Tensor& x, const Tensor& factors, const Tensor& out);
  virtual void do_gaussian_top_k(const Tensor& x, float deviations, const Tensor& out);
  // Aborts where BackendLimits::xielu is false.
  virtual void do_xielu(const Tensor& x, const XieluWeights& weights, const Tensor& out);
  // Aborts where BackendLimits::clamp is false.
  virtual void do_clamp(const Tensor& x, float limit, const Tensor& out);
  virtual void do_soft_cap(const Tensor& x, float cap, const Tensor& out) = 0;
  virtual void do_log_sum_exp(const Tensor& x, std::span<float> out) = 0;
};

// The readable definition of every op in plain loops; slow. Accumulates in double. With an
// activation type, products with quantised weights round their inputs so, whatever the weights say.
std::unique_ptr<Backend> make_reference_backend(std::optional<ActivationType> activations = {});

enum class Isa : uint8_t { baseline, avx2, avxvnni, avx512, avx512vnni, avx512bf16, amx };

std::string_view isa_name(Isa isa);
// The fastest set of this machine, or the one PACELINE_ISA names. Throws Error invalid when that is
// unknown, unsupported when the machine lacks it.
Isa choose_isa();
// The sets this machine can run, the baseline first.
std::span<const Isa> available_isas();

// About the scratch that a CPU backend allocates for products of up to `rows` rows: inputs of
// `widest` elements and those of the last product of a feed-forward network, as bfloat16, and the
// inner columns of each thread.
size_t cpu_product_bytes(int64_t rows, int64_t widest, int64_t mlp_width, int num_threads);

// About the scratch that it allocates for mix_experts with up to `slots` slots: their inputs of
// `widest` elements and those of their last products of `expert_width`, as bfloat16, and the inner
// columns of each thread.
size_t cpu_mixture_bytes(int64_t slots, int64_t widest, int64_t expert_width, int num_threads);

// The most scratch that it allocates for add_lora: the inner products of `rows` rows, whose
// matrices `a` have up to `ranks` rows together, each rounded up to whole panels, and prepared
// inputs of `widest` elements for each thread.
size_t cpu_lora_bytes(int64_t rows, int64_t ranks, int64_t widest, int num_threads);

// `threads` and `memory` must outlive the backend; scratch comes from `memory`.
std::unique_ptr<Backend> make_cpu_backend(Isa isa, ThreadPool& threads, Memory& memory);

}  // namespace paceline
