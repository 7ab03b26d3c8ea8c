#include "tests/engine/guarded_backend.h"

#include <sys/mman.h>

#include <cstring>

#include "base/error.h"

namespace paceline::testing {
namespace {

constexpr size_t kRoom = size_t{1} << 30;  // of addresses; pages are allocated on first write
constexpr size_t kPage = 4096;

}  // namespace

GuardedPages::GuardedPages() {
  void* const mapped =
      ::mmap(nullptr, kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  PL_CHECK(mapped != MAP_FAILED, "no room for guarded pages");
  pages_ = static_cast<std::byte*>(mapped);
}

GuardedPages::~GuardedPages() { ::munmap(pages_, kRoom); }

void* GuardedPages::take(size_t capacity) {
  const size_t bytes = (capacity + kPage - 1) / kPage * kPage;
  PL_CHECK(bytes <= kRoom - used_bytes_, "more guarded pages than there is room for");
  std::byte* const block = pages_ + used_bytes_;
  used_bytes_ += bytes;
  if (num_open_ > 0) PL_CHECK(::mprotect(block, bytes, PROT_READ | PROT_WRITE) == 0, "mprotect");
  return block;
}

void GuardedPages::clear(void* block, size_t capacity) {
  const Opened opened(*this);
  std::memset(block, 0, capacity);
}

void GuardedPages::open() {
  if (num_open_++ > 0 || used_bytes_ == 0) return;
  PL_CHECK(::mprotect(pages_, used_bytes_, PROT_READ | PROT_WRITE) == 0, "mprotect");
}

void GuardedPages::close() {
  if (--num_open_ > 0 || used_bytes_ == 0) return;
  PL_CHECK(::mprotect(pages_, used_bytes_, PROT_NONE) == 0, "mprotect");
}

GuardedBackend::GuardedBackend(ThreadPool& threads)
    : inner_(make_cpu_backend(choose_isa(), threads, memory_)) {}

std::span<const float> GuardedBackend::do_read(const Tensor& x, std::vector<float>& staging) {
  const GuardedPages::Opened opened(pages_);
  std::vector<float> unused;
  const std::span<const float> elements = inner_->read(x, unused);
  staging.assign(elements.begin(), elements.end());
  return staging;
}

void GuardedBackend::do_write(std::span<const float> elements, const Tensor& out) {
  const GuardedPages::Opened opened(pages_);
  inner_->write(elements, out);
}

PackedMatrix GuardedBackend::do_pack_matrix(std::span<const Tensor> parts, DType dtype) {
  const GuardedPages::Opened opened(pages_);
  return inner_->pack_matrix(parts, dtype);
}

PackedMatrix GuardedBackend::do_pack_groups(std::span<const GroupedRows* const> parts,
                                            ActivationType activations) {
  const GuardedPages::Opened opened(pages_);
  return inner_->pack_groups(parts, activations);
}

PackedMatrix GuardedBackend::do_gather_columns(const PackedMatrix& matrix,
                                               std::span<const int32_t> columns) {
  const GuardedPages::Opened opened(pages_);
  return inner_->gather_columns(matrix, columns);
}

void GuardedBackend::do_clear(const Tensor& out) {
  const GuardedPages::Opened opened(pages_);
  inner_->clear(out);
}

void GuardedBackend::do_add_scaled_rows(const Tensor& x, std::span<const int32_t> rows,
                                        std::span<const float> weights, const Tensor& out) {
  const GuardedPages::Opened opened(pages_);
  inner_->add_scaled_rows(x, rows, weights, out);
}

void GuardedBackend::do_gather_rows(const Tensor& x, Indices<int32_t> rows, const Tensor& out) {
  const GuardedPages::Opened opened(pages_);
  inner_->gather_rows(x, rows, out);
}

void GuardedBackend::do_finite_rows(const Tensor& x, RowFlags out) {
  const GuardedPages::Opened opened(pages_);
  inner_->finite_rows(x, out);
}

void GuardedBackend::do_pool_rows(RowPooling how, const Tensor& x, int64_t first_position,
                                  std::span<double> pooled) {
  const GuardedPages::Opened opened(pages_);
  inner_->pool_rows(how, x, first_position, pooled);
}

void GuardedBackend::do_copy_blocks(const KvStore& store, std::span<const BlockMove> moves) {
  const GuardedPages::Opened opened(pages_);
  num_copied_blocks_ += std::ssize(moves);
  inner_->copy_blocks(store, moves);
}

void GuardedBackend::do_embedding(const PackedMatrix& table, Indices<int32_t> ids, float scale,
                                  const Tensor& out) {
  const GuardedPages::Opened opened(pages_);
  inner_->embedding(table, ids, scale, out);
}

void GuardedBackend::do_matmul(const Tensor& x, const PackedMatrix& w, const Tensor* bias,
                               const Tensor& out) {
  const GuardedPages::Opened opened(pages_);
  inner_->matmul(x, w, bias, out);
}

void GuardedBackend::do_gated_mlp(const GatedMlpWeights& mlp, const Tensor& x, const Tensor& out) {
  const GuardedPages::Opened opened(pages_);
  inner_->gated_mlp(mlp, x, out);
}

void GuardedBackend::do_route(const Tensor& logits, const RoutingParams& params,
                              const Tensor* choice_bias, const Routing& out) {
  const GuardedPages::Opened opened(pages_);
  inner_->route(logits, params, choice_bias, out);
}

HostRouting GuardedBackend::do_read_routing(const Routing& routing) {
  const GuardedPages::Opened opened(pages_);
  return inner_->read_routing(routing);
}

void GuardedBackend::do_mix_experts(std::span<const GatedMlpWeights> experts,
                                    const Routing& routing, const Tensor& x, const Tensor& out) {
  const GuardedPages::Opened opened(pages_);
  inner_->mix_experts(experts, routing, x, out);
}

void GuardedBackend::do_add_lora(const Tensor& x, std::span<const LoraSegment> segments,
                                 const Tensor& out) {
  const GuardedPages::Opened opened(pages_);
  inner_->add_lora(x, segments, out);
}

void GuardedBackend::do_rms_norm(const Tensor& x, const Tensor& weight, float eps,
                                 const Tensor& out) {
  const GuardedPages::Opened opened(pages_);
  inner_->rms_norm(x, weight, eps, out);
}

void GuardedBackend::do_layer_norm(const Tensor& x, const Tensor& weight, const Tensor* bias,
                                   float eps, const Tensor& out) {
  const GuardedPages::Opened opened(pages_);
  inner_->layer_norm(x, weight, bias, eps, out);
}

void GuardedBackend::do_rope_table(Indices<int32_t> positions, const Tensor& inv_freq, float scale,
                                   const Tensor& table) {
  const GuardedPages::Opened opened(pages_);
  inner_->rope_table(positions, inv_freq, scale, table);
}

void GuardedBackend::do_rope(const Tensor& table, RopePairs pairs, const Tensor& x) {
  const GuardedPages::Opened opened(pages_);
  inner_->rope(table, pairs, x);
}

void GuardedBackend::do_store_kv(const Tensor& k, const Tensor& v, Indices<int64_t> slots,
                                 const KvStore& store) {
  const GuardedPages::Opened opened(pages_);
  inner_->store_kv(k, v, slots, store);
}

void GuardedBackend::do_attention(const Tensor& q, const KvStore& store,
                                  const AttentionSlices& slices, const AttentionParams& params,
                                  const Tensor& out, const Tensor* log_sum_exp) {
  const GuardedPages::Opened opened(pages_);
  inner_->attention(q, store, slices, params, out, log_sum_exp);
}

void GuardedBackend::do_apply_sinks(const Tensor& log_sum_exp, const Tensor& sinks,
                                    const Tensor& out) {
  const GuardedPages::Opened opened(pages_);
  inner_->apply_sinks(log_sum_exp, sinks, out);
}

void GuardedBackend::do_gated_activation(Activation kind, const Tensor& gate, const Tensor& up,
                                         const Tensor& out) {
  const GuardedPages::Opened opened(pages_);
  inner_->gated_activation(kind, gate, up, out);
}

void GuardedBackend::do_activation(Activation kind, const Tensor& x, const Tensor& out) {
  const GuardedPages::Opened opened(pages_);
  inner_->activation(kind, x, out);
}

void GuardedBackend::do_scale(const Tensor& x, std::span<const float> factors, const Tensor& out) {
  const GuardedPages::Opened opened(pages_);
  inner_->scale(x, factors, out);
}

void GuardedBackend::do_add(const Tensor& x, const Tensor& y, const Tensor& out) {
  const GuardedPages::Opened opened(pages_);
  inner_->add(x, y, out);
}

void GuardedBackend::do_scale_columns(const Tensor& x, const Tensor& factors, const Tensor& out) {
  const GuardedPages::Opened opened(pages_);
  inner_->scale_columns(x, factors, out);
}

void GuardedBackend::do_gaussian_top_k(const Tensor& x, float deviations, const Tensor& out) {
  const GuardedPages::Opened opened(pages_);
  inner_->gaussian_top_k(x, deviations, out);
}

void GuardedBackend::do_xielu(const Tensor& x, const XieluWeights& weights, const Tensor& out) {
  const GuardedPages::Opened opened(pages_);
  inner_->xielu(x, weights, out);
}

void GuardedBackend::do_clamp(const Tensor& x, float limit, const Tensor& out) {
  const GuardedPages::Opened opened(pages_);
  inner_->clamp(x, limit, out);
}

void GuardedBackend::do_soft_cap(const Tensor& x, float cap, const Tensor& out) {
  const GuardedPages::Opened opened(pages_);
  inner_->soft_cap(x, cap, out);
}

void GuardedBackend::do_log_sum_exp(const Tensor& x, std::span<float> out) {
  const GuardedPages::Opened opened(pages_);
  inner_->log_sum_exp(x, out);
}

}  // namespace paceline::testing
