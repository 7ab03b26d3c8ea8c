#include "kernels/backend.h"

#include <fmt/format.h>

#include "base/error.h"
#include "kernels/decode_slots.h"
#include "kernels/shape_check.h"

namespace paceline {
namespace {

// The elements that the CPU can check: none of a device's.
template <class T, class Device>
std::span<T> checkable(const OperandSpan<T, Device>& operand) {
  return operand.is_on_device() ? std::span<T>() : operand.host();
}

void check_scales(ShapeCheck& check, const KvStore& store) {
  check.tensor("key_scales", store.key_scales, {"blocks", "kv_heads", "block_size"});
  check.tensor("value_scales", store.value_scales, {"blocks", "kv_heads", "block_size"});
  PL_CHECK(store.key_scales.strides() == store.value_scales.strides(),
           "scales of keys and values lie alike");
}

void check_store(ShapeCheck& check, const KvStore& store) {
  const DType dtype = store.keys.dtype();
  PL_CHECK(is_float(dtype) || dtype == DType::i8, "a KV store holds floats or int8 codes");
  check.tensor("keys", store.keys, {"blocks", "kv_heads", "head_dim", "block_size"}, dtype);
  // Inside a block the elements of one head are one piece.
  const int64_t head_dim = check.size("head_dim"), block_size = check.size("block_size");
  PL_CHECK(head_dim == 1 || store.keys.stride(2) == block_size,
           "keys of a block must be contiguous");
  if (store.values_in_keys > 0) {
    PL_CHECK(store.values_in_keys <= head_dim, "values are a part of their keys");
  } else {
    check.tensor("values", store.values, {"blocks", "kv_heads", "block_size", "head_dim"}, dtype);
    PL_CHECK(block_size == 1 || store.values.stride(2) == head_dim,
             "values of a block must be contiguous");
  }
  if (store.has_scales()) check_scales(check, store);
}

void check_slice(const AttentionSlice& slice, int64_t rows, const KvStore& store,
                 const AttentionParams& params) {
  const int64_t window = params.window;
  PL_CHECK(slice.first_row >= 0 && slice.num_rows >= 0 && slice.first_row + slice.num_rows <= rows,
           fmt::format("attention: slice rows [{}, +{}) of a batch of {}", slice.first_row,
                       slice.num_rows, rows));
  PL_CHECK(slice.first_position >= 0, "attention: negative position");
  PL_CHECK(!params.bidirectional || slice.first_position == 0,
           "attention in both directions: a slice that isn't a whole sequence");
  const int64_t block_size = store.block_size();
  const int64_t end = slice.first_position + slice.num_rows;
  const int64_t begin = window > 0 && slice.first_position >= window  //
                            ? slice.first_position - window + 1
                            : 0;
  const int64_t num_blocks = (end + block_size - 1) / block_size;
  PL_CHECK(static_cast<int64_t>(slice.block_table.size()) >= num_blocks,
           fmt::format("attention: a block table of {} blocks of {} slots for {} positions",
                       slice.block_table.size(), block_size, end));
  for (int64_t i = begin / block_size; i < num_blocks; ++i) {
    const int32_t block = slice.block_table[static_cast<size_t>(i)];
    PL_CHECK(block >= 0 && block < store.keys.size(0),
             fmt::format("attention: entry {} of a block table is block {} of {}", i, block,
                         store.keys.size(0)));
  }
}

void check_columns(ShapeCheck& check, std::string_view owner, const PackedColumns& columns,
                   std::string_view n, std::string_view k) {
  PL_CHECK(columns.first >= 0 && columns.first + columns.count <= columns.matrix->n,
           fmt::format("gated_mlp: {} is columns [{}, +{}) of {}", owner, columns.first,
                       columns.count, columns.matrix->n));
  PL_CHECK(
      !columns.bias || (columns.bias->rank() == 1 && columns.bias->dtype() == DType::f32 &&
                        columns.bias->size(0) == columns.matrix->n),
      fmt::format("gated_mlp: {} has a bias that isn't float32 [{}]", owner, columns.matrix->n));
  check.dimension(owner, n, columns.count);
  check.dimension(owner, k, columns.matrix->k);
}

void check_routing(ShapeCheck& check, const Routing& routing) {
  check.tensor("experts", routing.experts, {"rows", "slots"}, DType::i32);
  check.tensor("weights", routing.weights, {"rows", "slots"});
}

void check_routing_params(const RoutingParams& params) {
  PL_CHECK(params.experts_per_token > 0 && params.experts_per_token <= params.num_experts,
           fmt::format("route: {} experts of {}", params.experts_per_token, params.num_experts));
  const int64_t groups = params.num_groups, kept = params.groups_kept;
  PL_CHECK(groups > 0 && params.num_experts % groups == 0 && kept > 0 && kept <= groups &&
               kept * (params.num_experts / groups) >= params.experts_per_token,
           fmt::format("route: {} experts of {} groups of {}, of {} experts",
                       params.experts_per_token, kept, groups, params.num_experts));
}

// [n, k] of each expert; their widths may differ.
void check_expert(const GatedMlpWeights& expert, int64_t k, int64_t n) {
  ShapeCheck check("mix_experts");
  check.dimension("x", "k", k);
  check.dimension("out", "n", n);
  check_columns(check, "gate", expert.gate, "width", "k");
  check_columns(check, "up", expert.up, "width", "k");
  check_columns(check, "down", expert.down, "n", "width");
  PL_CHECK(expert.down.count == expert.down.matrix->n, "mix_experts: down is a whole matrix");
}

void check_lora_segment(const LoraSegment& segment, const LoraSegment* before, const Tensor& x,
                        const Tensor& out) {
  const PackedMatrix& a = *segment.a;
  const PackedMatrix& b = *segment.b;
  PL_CHECK(!a.groups && !b.groups, "add_lora: quantised matrices");
  PL_CHECK(a.k == x.size(1), fmt::format("add_lora: x has k = {}, but a has {}", x.size(1), a.k));
  PL_CHECK(b.k <= kSegmentLength && segment.first_rank >= 0 && segment.first_rank + b.k <= a.n,
           fmt::format("add_lora: b has ranks [{}, +{}) of a's {}, expected at most {}",
                       segment.first_rank, b.k, a.n, kSegmentLength));
  PL_CHECK(
      segment.first_column >= 0 && segment.first_column + b.n <= out.size(1),
      fmt::format("add_lora: columns [{}, +{}) of {}", segment.first_column, b.n, out.size(1)));
  PL_CHECK(segment.first_row >= 0 && segment.num_rows > 0 &&
               segment.first_row + segment.num_rows <= out.size(0),
           fmt::format("add_lora: rows [{}, +{}) of a batch of {}", segment.first_row,
                       segment.num_rows, out.size(0)));
  if (before == nullptr) return;
  const bool has_same_rows =
      segment.first_row == before->first_row && segment.num_rows == before->num_rows;
  PL_CHECK(has_same_rows ? segment.first_column >= before->first_column + before->b->n
                         : segment.first_row >= before->first_row + before->num_rows,
           fmt::format("add_lora: the segment of row {} and column {} stands behind the one of row "
                       "{} and column {}",
                       segment.first_row, segment.first_column, before->first_row,
                       before->first_column));
}

// parts [n, k] of any float dtype.
void check_plain_parts(std::span<const Tensor> parts) {
  PL_CHECK(!parts.empty(), "pack_matrix: no parts");
  const int64_t k = parts[0].size(-1);
  int64_t n = 0;
  for (const Tensor& part : parts) {
    PL_CHECK(part.rank() == 2 && part.size(1) == k && is_float(part.dtype()),
             fmt::format("pack_matrix: a part is {} {}, expected [n, {}]", dtype_name(part.dtype()),
                         to_string(part.shape()), k));
    PL_CHECK(k <= 1 || part.stride(1) == 1, "pack_matrix: rows must be contiguous");
    n += part.size(0);
  }
  PL_CHECK(n > 0 && k > 0, fmt::format("pack_matrix: an empty matrix [{}, {}]", n, k));
}

void check_grouped_parts(std::span<const GroupedRows* const> parts) {
  PL_CHECK(!parts.empty(), "pack_groups: no parts");
  const Grouping grouping = parts[0]->grouping();
  const int64_t size = grouping.group_size, k = parts[0]->row_length();
  PL_CHECK(!grouping.is_float8() || grouping == float8_grouping(size),
           "pack_groups: E4M3 has 8 bits around 0 and scales of its own");
  PL_CHECK(can_pack_codes(grouping.bits, size) &&
               (size == 16 || size == 32 || size == 64 || size == 128) && k > 0 &&
               grouping.groups_per_factor > 0 && kSegmentLength % grouping.factor_length() == 0 &&
               k % grouping.factor_length() == 0,
           fmt::format("pack_groups: {} bits in {} groups of {} in rows of {}", grouping.bits,
                       grouping.groups_per_factor, size, k));
  const std::span<const int32_t> order = parts[0]->column_order();
  PL_CHECK(order.empty() || is_permutation(order, k), "pack_groups: an order of all columns");
  PL_CHECK(order.empty() || !(grouping.is_float8() || grouping.has_multiples()),
           "pack_groups: ordered columns of integers with scales of their own");
  for (const GroupedRows* const part : parts) {
    PL_CHECK(part->grouping() == grouping && part->row_length() == k && part->num_rows() > 0,
             "pack_groups: parts of different groupings or lengths");
    PL_CHECK(std::ranges::equal(part->column_order(), order),
             "pack_groups: parts of different orders");
  }
}

void check_floats(std::string_view op, const Tensor& tensor) {
  PL_CHECK(tensor.dtype() == DType::f32 && tensor.is_contiguous(),
           fmt::format("{}: {} {}, expected contiguous float32", op, dtype_name(tensor.dtype()),
                       to_string(tensor.shape())));
}

}  // namespace

std::span<const float> Backend::read(const Tensor& x, std::vector<float>& staging) {
  check_floats("read", x);
  return x.empty() ? std::span<const float>() : do_read(x, staging);
}

void Backend::write(std::span<const float> elements, const Tensor& out) {
  check_floats("write", out);
  PL_CHECK(std::ssize(elements) == out.num_elements(),
           fmt::format("write: {} elements to {}", elements.size(), to_string(out.shape())));
  if (!out.empty()) do_write(elements, out);
}

PackedMatrix Backend::pack_matrix(std::span<const Tensor> parts, DType dtype) {
  PL_CHECK(is_float(dtype), "pack_matrix: plain weights are floats");
  check_plain_parts(parts);
  return do_pack_matrix(parts, dtype);
}

PackedMatrix Backend::pack_groups(std::span<const GroupedRows* const> parts,
                                  ActivationType activations) {
  check_grouped_parts(parts);
  return do_pack_groups(parts, activations);
}

PackedMatrix Backend::gather_columns(const PackedMatrix& matrix, std::span<const int32_t> columns) {
  PL_CHECK(!columns.empty(), "gather_columns: no columns");
  for (const int32_t column : columns) {
    PL_CHECK(column >= 0 && column < matrix.n,
             fmt::format("gather_columns: column {} of {}", column, matrix.n));
  }
  return do_gather_columns(matrix, columns);
}

void Backend::gather_rows(const Tensor& x, Indices<int32_t> rows, const Tensor& out) {
  ShapeCheck check("gather_rows");
  check.tensor("x", x, {"any", "width"});
  check.dimension("rows", "rows", rows.size());
  check.tensor("out", out, {"rows", "width"});
  for (const int32_t row : checkable(rows)) {
    PL_CHECK(row >= 0 && row < x.size(0), fmt::format("gather_rows: row {} of {}", row, x.size(0)));
  }
  if (!out.empty()) do_gather_rows(x, rows, out);
}

void Backend::clear(const Tensor& out) {
  ShapeCheck check("clear");
  check.tensor("out", out, {"rows", "width"});
  if (!out.empty()) do_clear(out);
}

void Backend::add_scaled_rows(const Tensor& x, std::span<const int32_t> rows,
                              std::span<const float> weights, const Tensor& out) {
  ShapeCheck check("add_scaled_rows");
  check.tensor("x", x, {"rows", "width"});
  check.dimension("rows", "rows", std::ssize(rows));
  check.dimension("weights", "rows", std::ssize(weights));
  check.tensor("out", out, {"any", "width"});
  for (const int32_t row : rows) {
    PL_CHECK(row >= 0 && row < out.size(0),
             fmt::format("add_scaled_rows: row {} of {}", row, out.size(0)));
  }
  if (!x.empty()) do_add_scaled_rows(x, rows, weights, out);
}

void Backend::finite_rows(const Tensor& x, RowFlags out) {
  ShapeCheck check("finite_rows");
  check.tensor("x", x, {"rows", "width"});
  check.dimension("out", "rows", out.size());
  if (out.size() > 0) do_finite_rows(x, out);
}

void Backend::pool_rows(RowPooling how, const Tensor& x, int64_t first_position,
                        std::span<double> pooled) {
  ShapeCheck check("pool_rows");
  check.tensor("x", x, {"rows", "width"});
  check.dimension("pooled", "width", std::ssize(pooled));
  PL_CHECK(first_position >= 0, "pool_rows: a negative position");
  if (!x.empty()) do_pool_rows(how, x, first_position, pooled);
}

void Backend::copy_blocks(const KvStore& store, std::span<const BlockMove> moves) {
  ShapeCheck check("copy_blocks");
  check_store(check, store);
  const int64_t num_blocks = check.size("blocks");
  for (const BlockMove& move : moves) {
    PL_CHECK(move.from >= 0 && move.from < num_blocks && move.to >= 0 && move.to < num_blocks,
             fmt::format("copy_blocks: block {} to {} of {}", move.from, move.to, num_blocks));
  }
  if (!moves.empty()) do_copy_blocks(store, moves);
}

std::unique_ptr<DecodeSlots> Backend::make_decode_slots(const DecodeShape& /*shape*/) {
  return nullptr;
}

void Backend::embedding(const PackedMatrix& table, Indices<int32_t> ids, float scale,
                        const Tensor& out) {
  ShapeCheck check("embedding");
  check.dimension("ids", "rows", ids.size());
  check.dimension("table", "hidden", table.k);
  check.tensor("out", out, {"rows", "hidden"});
  for (const int32_t id : checkable(ids)) {
    PL_CHECK(id >= 0 && id < table.n, fmt::format("embedding: id {} of {}", id, table.n));
  }
  if (!out.empty()) do_embedding(table, ids, scale, out);
}

void Backend::matmul(const Tensor& x, const PackedMatrix& w, const Tensor* bias,
                     const Tensor& out) {
  ShapeCheck check("matmul");
  check.dimension("w", "n", w.n);
  check.dimension("w", "k", w.k);
  check.tensor("x", x, {"rows", "k"});
  check.tensor("out", out, {"rows", "n"});
  if (bias != nullptr) check.tensor("bias", *bias, {"n"});
  if (!out.empty()) do_matmul(x, w, bias, out);
}

void Backend::gated_mlp(const GatedMlpWeights& mlp, const Tensor& x, const Tensor& out) {
  ShapeCheck check("gated_mlp");
  check_columns(check, "gate", mlp.gate, "width", "k");
  check_columns(check, "up", mlp.up, "width", "k");
  check_columns(check, "down", mlp.down, "n", "width");
  PL_CHECK(mlp.down.count == mlp.down.matrix->n, "gated_mlp: down is a whole matrix");
  check.tensor("x", x, {"rows", "k"});
  check.tensor("out", out, {"rows", "n"});
  if (!out.empty()) do_gated_mlp(mlp, x, out);
}

void Backend::route(const Tensor& logits, const RoutingParams& params, const Tensor* choice_bias,
                    const Routing& out) {
  check_routing_params(params);
  ShapeCheck check("route");
  check.dimension("params", "logits", params.num_logits());
  check.dimension("params", "slots", params.num_slots());
  check.dimension("params", "experts", params.num_experts);
  check.tensor("logits", logits, {"rows", "logits"});
  if (choice_bias != nullptr) check.tensor("choice_bias", *choice_bias, {"experts"});
  check_routing(check, out);
  if (!logits.empty()) do_route(logits, params, choice_bias, out);
}

HostRouting Backend::read_routing(const Routing& routing) {
  ShapeCheck check("read_routing");
  check_routing(check, routing);
  return do_read_routing(routing);
}

void Backend::check_experts(std::span<const GatedMlpWeights> experts) {
  PL_CHECK(!experts.empty(), "mix_experts: no experts");
  const int64_t k = experts.front().gate.matrix->k, n = experts.front().down.matrix->n;
  for (const GatedMlpWeights& expert : experts) check_expert(expert, k, n);
}

void Backend::mix_experts(std::span<const GatedMlpWeights> experts, const Routing& routing,
                          const Tensor& x, const Tensor& out) {
  ShapeCheck check("mix_experts");
  check_routing(check, routing);
  check.tensor("x", x, {"rows", "k"});
  check.tensor("out", out, {"rows", "n"});
  PL_CHECK(!experts.empty(), "mix_experts: no experts");
  check_expert(experts.front(), x.size(1), out.size(1));
  if (!out.empty()) do_mix_experts(experts, routing, x, out);
}

void Backend::add_lora(const Tensor& x, std::span<const LoraSegment> segments, const Tensor& out) {
  ShapeCheck check("add_lora");
  check.tensor("x", x, {"rows", "k"});
  check.tensor("out", out, {"rows", "n"});
  const LoraSegment* before = nullptr;
  for (const LoraSegment& segment : segments) {
    check_lora_segment(segment, before, x, out);
    before = &segment;
  }
  if (!out.empty() && !segments.empty()) do_add_lora(x, segments, out);
}

namespace {

void check_norm(ShapeCheck& check, const Tensor& x, const Tensor& weight, const Tensor& out) {
  if (x.rank() == 3) {
    check.tensor("x", x, {"rows", "heads", "width"});
    check.tensor("out", out, {"rows", "heads", "width"});
  } else {
    check.tensor("x", x, {"rows", "width"});
    check.tensor("out", out, {"rows", "width"});
  }
  check.tensor("weight", weight, {"width"});
}

}  // namespace

void Backend::layer_norm(const Tensor& x, const Tensor& weight, const Tensor* bias, float eps,
                         const Tensor& out) {
  ShapeCheck check("layer_norm");
  check_norm(check, x, weight, out);
  if (bias != nullptr) check.tensor("bias", *bias, {"width"});
  if (!out.empty()) do_layer_norm(x, weight, bias, eps, out);
}

void Backend::rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out) {
  ShapeCheck check("rms_norm");
  check_norm(check, x, weight, out);
  if (!out.empty()) do_rms_norm(x, weight, eps, out);
}

void Backend::add_rms_norm(const Tensor& residual, const Tensor& branch,
                           const RmsNormWeights* branch_norm, const RmsNormWeights& norm,
                           const Tensor& out) {
  ShapeCheck check("add_rms_norm");
  check.tensor("residual", residual, {"rows", "width"});
  check.tensor("branch", branch, {"rows", "width"});
  if (branch_norm != nullptr) check.tensor("branch_norm", branch_norm->weight, {"width"});
  check.tensor("norm", norm.weight, {"width"});
  check.tensor("out", out, {"rows", "width"});
  if (!out.empty()) do_add_rms_norm(residual, branch, branch_norm, norm, out);
}

void Backend::do_add_rms_norm(const Tensor& residual, const Tensor& branch,
                              const RmsNormWeights* branch_norm, const RmsNormWeights& norm,
                              const Tensor& out) {
  if (branch_norm != nullptr) do_rms_norm(branch, branch_norm->weight, branch_norm->eps, out);
  do_add(residual, branch_norm != nullptr ? out : branch, residual);
  do_rms_norm(residual, norm.weight, norm.eps, out);
}

void Backend::rope_table(Indices<int32_t> positions, const Tensor& inv_freq, float scale,
                         const Tensor& table) {
  ShapeCheck check("rope_table");
  check.dimension("positions", "rows", positions.size());
  check.dimension("a pair", "2", 2);
  check.tensor("inv_freq", inv_freq, {"half"});
  check.tensor("table", table, {"rows", "half", "2"});
  PL_CHECK(table.size(1) <= 1 || table.stride(1) == 2, "rope_table: a row of table is contiguous");
  if (!table.empty()) do_rope_table(positions, inv_freq, scale, table);
}

namespace {

void check_rope_table(ShapeCheck& check, const Tensor& table) {
  check.dimension("a pair", "2", 2);
  check.tensor("table", table, {"rows", "half", "2"});
  PL_CHECK(table.size(1) <= 1 || table.stride(1) == 2, "rope: a row of table is contiguous");
}

void check_rotated_part(ShapeCheck& check) {
  PL_CHECK(2 * check.size("half") <= check.size("head_dim"), "rope: half is at most head_dim / 2");
}

void check_stored(ShapeCheck& check, const Tensor& k, const Tensor& v, Indices<int64_t> slots,
                  const KvStore& store) {
  check.dimension("slots", "rows", slots.size());
  check.tensor("k", k, {"rows", "kv_heads", "head_dim"});
  if (store.values_in_keys == 0) check.tensor("v", v, {"rows", "kv_heads", "head_dim"});
  check_store(check, store);
  const int64_t num_slots = check.size("blocks") * check.size("block_size");
  for (const int64_t slot : checkable(slots)) {
    PL_CHECK(slot >= 0 && slot < num_slots,
             fmt::format("store_kv: slot {} of {}", slot, num_slots));
  }
}

}  // namespace

void Backend::rope(const Tensor& table, RopePairs pairs, const Tensor& x) {
  ShapeCheck check("rope");
  check_rope_table(check, table);
  check.tensor("x", x, {"rows", "heads", "head_dim"});
  check_rotated_part(check);
  if (!x.empty() && !table.empty()) do_rope(table, pairs, x);
}

void Backend::store_kv(const Tensor& k, const Tensor& v, Indices<int64_t> slots,
                       const KvStore& store) {
  ShapeCheck check("store_kv");
  check_stored(check, k, v, slots, store);
  if (!k.empty()) do_store_kv(k, v, slots, store);
}

void Backend::place_heads(const HeadPlacement& placement, const Tensor& q, const Tensor& k,
                          const Tensor& v, Indices<int64_t> slots, const KvStore& store) {
  ShapeCheck check("place_heads");
  check_stored(check, k, v, slots, store);
  check.tensor("q", q, {"rows", "heads", "head_dim"});
  for (const auto* norm : {&placement.q_norm, &placement.k_norm}) {
    if (*norm) check.tensor("norm", (*norm)->weight, {"head_dim"});
  }
  if (placement.rope_table != nullptr) {
    check_rope_table(check, *placement.rope_table);
    check_rotated_part(check);
  }
  if (!q.empty()) do_place_heads(placement, q, k, v, slots, store);
}

void Backend::do_place_heads(const HeadPlacement& placement, const Tensor& q, const Tensor& k,
                             const Tensor& v, Indices<int64_t> slots, const KvStore& store) {
  if (placement.q_norm) do_rms_norm(q, placement.q_norm->weight, placement.q_norm->eps, q);
  if (placement.k_norm) do_rms_norm(k, placement.k_norm->weight, placement.k_norm->eps, k);
  if (placement.rope_table != nullptr && !placement.rope_table->empty()) {
    do_rope(*placement.rope_table, placement.pairs, q);
    do_rope(*placement.rope_table, placement.pairs, k);
  }
  do_store_kv(k, v, slots, store);
}

namespace {

void check_position_scores(ShapeCheck& check, const AttentionSlice& slice,
                           const AttentionParams& params) {
  const PositionScores& scores = *params.position_scores;
  const bool has_terms = scores.has_query_terms() || scores.has_key_terms();
  PL_CHECK(slice.first_position + slice.num_rows <= scores.reach + 1 &&
               (slice.first_position == 0 || !has_terms) &&
               (!params.bidirectional || slice.num_rows <= scores.reach_ahead + 1),
           fmt::format("attention: {} rows from position {} on, of scores that reach {} positions",
                       slice.num_rows, slice.first_position, scores.reach));
  check.dimension("distances", "distances", scores.width());
  if (scores.has_distances()) {
    check.tensor("by_distance", scores.by_distance, {"heads", "distances"});
  }
  const auto check_terms = [&](const char* name, const Tensor& terms) {
    check.tensor(name, terms, {"rows", "heads", "buckets"});
    PL_CHECK(std::ssize(scores.buckets) == scores.width(), "attention: a bucket for each distance");
  };
  if (scores.has_query_terms()) check_terms("of_queries", scores.of_queries);
  if (scores.has_key_terms()) check_terms("of_keys", scores.of_keys);
}

}  // namespace

void Backend::attention(const Tensor& q, const KvStore& store, const AttentionSlices& slices,
                        const AttentionParams& params, const Tensor& out,
                        const Tensor* log_sum_exp) {
  ShapeCheck check("attention");
  check.tensor("q", q, {"rows", "heads", "head_dim"});
  check.dimension("values", "value_dim", store.value_dim());
  check.tensor("out", out, {"rows", "heads", "value_dim"});
  if (log_sum_exp != nullptr) check.tensor("log_sum_exp", *log_sum_exp, {"rows", "heads"});
  check_store(check, store);
  PL_CHECK(check.size("kv_heads") > 0 && check.size("heads") % check.size("kv_heads") == 0,
           fmt::format("attention: {} heads on {} kv heads", check.size("heads"),
                       check.size("kv_heads")));
  PL_CHECK(params.window >= 0 && params.soft_cap >= 0.0f, "attention: negative window or cap");
  PL_CHECK(!params.chunked || (params.window > 0 && !params.bidirectional),
           "attention: chunks have a length, and see what is before alone");
  for (const AttentionSlice& slice : checkable(slices)) {
    check_slice(slice, check.size("rows"), store, params);
    if (params.position_scores != nullptr) check_position_scores(check, slice, params);
  }
  if (!out.empty() && slices.size() > 0) {
    do_attention(q, store, slices, params, out, log_sum_exp);
  }
}

void Backend::apply_sinks(const Tensor& log_sum_exp, const Tensor& sinks, const Tensor& out) {
  ShapeCheck check("apply_sinks");
  check.tensor("log_sum_exp", log_sum_exp, {"rows", "heads"});
  check.tensor("sinks", sinks, {"heads"});
  check.tensor("out", out, {"rows", "heads", "head_dim"});
  if (!out.empty()) do_apply_sinks(log_sum_exp, sinks, out);
}

void Backend::gated_activation(Activation kind, const Tensor& gate, const Tensor& up,
                               const Tensor& out) {
  ShapeCheck check("gated_activation");
  check.tensor("gate", gate, {"rows", "width"});
  check.tensor("up", up, {"rows", "width"});
  check.tensor("out", out, {"rows", "width"});
  if (!out.empty()) do_gated_activation(kind, gate, up, out);
}

void Backend::add(const Tensor& x, const Tensor& y, const Tensor& out) {
  ShapeCheck check("add");
  check.tensor("x", x, {"rows", "width"});
  check.tensor("y", y, {"rows", "width"});
  check.tensor("out", out, {"rows", "width"});
  if (!out.empty()) do_add(x, y, out);
}

void Backend::activation(Activation kind, const Tensor& x, const Tensor& out) {
  ShapeCheck check("activation");
  check.tensor("x", x, {"rows", "width"});
  check.tensor("out", out, {"rows", "width"});
  if (!out.empty()) do_activation(kind, x, out);
}

void Backend::scale(const Tensor& x, std::span<const float> factors, const Tensor& out) {
  ShapeCheck check("scale");
  check.tensor("x", x, {"rows", "width"});
  check.tensor("out", out, {"rows", "width"});
  if (factors.size() != 1) check.dimension("factors", "rows", std::ssize(factors));
  if (!out.empty()) do_scale(x, factors, out);
}

void Backend::scale_columns(const Tensor& x, const Tensor& factors, const Tensor& out) {
  ShapeCheck check("scale_columns");
  check.tensor("x", x, {"rows", "width"});
  check.tensor("factors", factors, {"width"});
  check.tensor("out", out, {"rows", "width"});
  if (!out.empty()) do_scale_columns(x, factors, out);
}

void Backend::gaussian_top_k(const Tensor& x, float deviations, const Tensor& out) {
  ShapeCheck check("gaussian_top_k");
  check.tensor("x", x, {"rows", "width"});
  check.tensor("out", out, {"rows", "width"});
  if (!out.empty()) do_gaussian_top_k(x, deviations, out);
}

void Backend::xielu(const Tensor& x, const XieluWeights& weights, const Tensor& out) {
  ShapeCheck check("xielu");
  check.tensor("x", x, {"rows", "width"});
  check.tensor("out", out, {"rows", "width"});
  if (!out.empty()) do_xielu(x, weights, out);
}

void Backend::clamp(const Tensor& x, float limit, const Tensor& out) {
  ShapeCheck check("clamp");
  check.tensor("x", x, {"rows", "width"});
  check.tensor("out", out, {"rows", "width"});
  PL_CHECK(limit > 0.0f, "clamp: a limit above 0");
  if (!out.empty()) do_clamp(x, limit, out);
}

void Backend::do_scale_columns(const Tensor&, const Tensor&, const Tensor&) {
  PL_CHECK(false, "scale_columns: the backend lacks it");
}

void Backend::do_gaussian_top_k(const Tensor&, float, const Tensor&) {
  PL_CHECK(false, "gaussian_top_k: the backend lacks it");
}

void Backend::do_xielu(const Tensor&, const XieluWeights&, const Tensor&) {
  PL_CHECK(false, "xielu: the backend lacks it");
}

void Backend::do_clamp(const Tensor&, float, const Tensor&) {
  PL_CHECK(false, "clamp: the backend lacks it");
}

void Backend::soft_cap(const Tensor& x, float cap, const Tensor& out) {
  ShapeCheck check("soft_cap");
  check.tensor("x", x, {"rows", "width"});
  check.tensor("out", out, {"rows", "width"});
  PL_CHECK(cap > 0.0f, "soft_cap: the cap is positive");
  if (!out.empty()) do_soft_cap(x, cap, out);
}

void Backend::log_sum_exp(const Tensor& x, std::span<float> out) {
  ShapeCheck check("log_sum_exp");
  check.tensor("x", x, {"rows", "width"});
  check.dimension("out", "rows", std::ssize(out));
  PL_CHECK(check.size("width") > 0, "log_sum_exp: rows are not empty");
  if (!out.empty()) do_log_sum_exp(x, out);
}

}  // namespace paceline
