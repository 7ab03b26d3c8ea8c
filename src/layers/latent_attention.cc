#include "layers/latent_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/backend.h"
#include "layers/load_context.h"

namespace paceline {
namespace {

// Elements of queries that are absorbed at a time, if a few heads have no more.
constexpr int64_t kAbsorbedElements = int64_t{4} << 20;
constexpr int64_t kFewHeads = 8;

int64_t heads_at_once(const LatentConfig& config, int64_t num_heads, int64_t rows) {
  const int64_t fitting = kAbsorbedElements / std::max<int64_t>(rows * config.row_dim(), 1);
  return std::clamp(fitting, std::min(kFewHeads, num_heads), num_heads);
}

// Grows with the rows, as the number of heads at once doesn't.
int64_t absorbed_elements(const LatentConfig& config, int64_t num_heads, int64_t rows) {
  const int64_t head = rows * config.row_dim();
  return std::max(head * std::min(kFewHeads, num_heads),
                  std::min(head * num_heads, kAbsorbedElements));
}

int64_t query_width(const LatentConfig& config, int64_t num_heads) {
  return config.query_rank > 0 ? config.query_rank : num_heads * config.query_dim();
}

Linear::Bias stored_if(bool has_bias) {
  return has_bias ? Linear::Bias::stored : Linear::Bias::none;
}

Linear load_input(const LoadContext& context, const std::string& name,
                  const AttentionConfig& attention, const LatentConfig& config) {
  const bool has_latent = config.query_rank > 0;
  const std::array<Projection, 2> parts = {
      Projection{.name = name + (has_latent ? ".q_a_proj" : ".q_proj"),
                 .out_features = query_width(config, attention.num_heads),
                 .has_bias = has_latent},
      Projection{.name = name + ".kv_a_proj_with_mqa", .out_features = config.row_dim()}};
  return Linear(context, parts, attention.hidden_size, stored_if(config.has_bias));
}

std::optional<Linear> load_queries(const LoadContext& context, const std::string& name,
                                   int64_t num_heads, const LatentConfig& config) {
  if (config.query_rank == 0) return std::nullopt;
  const std::array<Projection, 1> parts = {{{name + ".q_b_proj", num_heads * config.query_dim()}}};
  return Linear(context, parts, config.query_rank, Linear::Bias::none);
}

Linear load_output(const LoadContext& context, const std::string& name,
                   const AttentionConfig& attention, const LatentConfig& config) {
  const std::array<Projection, 1> parts = {{{name + ".o_proj", attention.hidden_size}}};
  return Linear(context, parts, attention.num_heads * config.value_dim, stored_if(config.has_bias));
}

Norm load_norm(const LoadContext& context, const std::string& name, int64_t width,
               const LatentConfig& config) {
  return Norm(context, name, width, {.eps = config.norm_eps});
}

// The two matrices of a head.
struct HeadMatrices {
  Tensor keys;    // [rank, nope_dim]
  Tensor values;  // [value_dim, rank]
};

// The rows of head `head` among those of all.
Tensor rows_of(const Tensor& matrix, int64_t head, int64_t count) {
  return matrix.slice(0, head * count, (head + 1) * count);
}

// Both matrices of all heads, plain. Files have them as one, kv_b_proj: of each head the rows of
// its keys, then those of its values. GGUF files and mlx-lm's may have two, [heads, rows, columns],
// the first one's heads transposed.
class StoredHeads {
 public:
  StoredHeads(const LoadContext& context, const std::string& name, int64_t num_heads,
              const LatentConfig& config)
      : weights_(context.weights), config_(config) {
    const std::string joined = name + ".kv_b_proj.weight";
    for (const auto& [keys, values] : {std::pair{".k_b_proj.weight", ".v_b_proj.weight"},
                                       {".embed_q.weight", ".unembed_out.weight"}}) {
      if (weights_.contains(joined) || !weights_.contains(name + keys)) continue;
      keys_ = read_stack(name + keys, num_heads, {config.rank, config.nope_dim});
      values_ = read_stack(name + values, num_heads, {config.value_dim, config.rank});
      return;
    }
    joined_ = read(joined, {num_heads * (config.nope_dim + config.value_dim), config.rank});
  }
  ~StoredHeads() {
    for (const std::string& name : names_) weights_.release(name);
  }
  StoredHeads(const StoredHeads&) = delete;
  StoredHeads& operator=(const StoredHeads&) = delete;

  HeadMatrices head(int64_t index) const {
    if (!joined_) {
      return {rows_of(*keys_, index, config_.rank), rows_of(*values_, index, config_.value_dim)};
    }
    const Tensor rows = rows_of(*joined_, index, config_.nope_dim + config_.value_dim);
    const Tensor keys = rows.slice(0, 0, config_.nope_dim);
    return {
        .keys = keys.as_strided({config_.rank, config_.nope_dim}, {keys.stride(1), keys.stride(0)}),
        .values = rows.slice(0, config_.nope_dim, config_.nope_dim + config_.value_dim)};
  }

 private:
  // [heads, rows, columns] as [heads * rows, columns].
  Tensor read_stack(const std::string& name, int64_t num_heads, const Extents& head) {
    return read(name, {num_heads, head[0], head[1]}).reshape({num_heads * head[0], head[1]});
  }
  Tensor read(const std::string& name, const Extents& shape) {
    names_.push_back(name);
    return weights_.read_as_stored(name, shape);
  }

  WeightReader& weights_;
  const LatentConfig& config_;
  std::vector<std::string> names_;
  std::optional<Tensor> joined_, keys_, values_;
};

struct PackedHeads {
  std::vector<PackedMatrix> keys, values;
};

std::string head_part(const std::string& name, std::string_view part, int64_t head) {
  return fmt::format("{}.{}.{}", name, part, head);
}

// As of prepared weights; nothing without them.
std::optional<PackedHeads> prepared_heads(const LoadContext& context, const std::string& name,
                                          int64_t num_heads, const LatentConfig& config) {
  PackedHeads heads;
  for (int64_t head = 0; head < num_heads; ++head) {
    auto keys = prepared_matrix(context, head_part(name, "k_b", head), config.nope_dim);
    auto values = prepared_matrix(context, head_part(name, "v_b", head), config.rank);
    if (!keys || !values) return std::nullopt;
    heads.keys.push_back(std::move(*keys));
    heads.values.push_back(std::move(*values));
  }
  return heads;
}

PackedMatrix pack_head(const LoadContext& context, const std::string& name, const Tensor& stored) {
  // Packing reads whole rows.
  std::vector<float> elements(static_cast<size_t>(stored.num_elements()));
  const Tensor rows(elements.data(), DType::f32, stored.shape());
  copy_elements(stored, rows);
  PackedMatrix matrix = context.backend.pack_matrix(std::array{rows}, context.weight_dtype);
  if (context.written != nullptr) {
    context.written->add(matrix_part(name, matrix));
    matrix.storage = {};
  }
  return matrix;
}

PackedHeads load_heads(const LoadContext& context, const std::string& name, int64_t num_heads,
                       const LatentConfig& config) {
  if (auto prepared = prepared_heads(context, name, num_heads, config)) return std::move(*prepared);
  const StoredHeads stored(context, name, num_heads, config);
  PackedHeads heads;
  for (int64_t head = 0; head < num_heads; ++head) {
    const HeadMatrices matrices = stored.head(head);
    heads.keys.push_back(pack_head(context, head_part(name, "k_b", head), matrices.keys));
    heads.values.push_back(pack_head(context, head_part(name, "v_b", head), matrices.values));
  }
  return heads;
}

// Columns [first, first + count) of each head of x [rows, heads, width], of one head [rows, count].
Tensor part_of_head(const Tensor& x, int64_t head, int64_t first, int64_t count) {
  return x.as_strided({x.size(0), count}, {x.stride(0), 1}, head * x.stride(1) + first);
}

Tensor part_of_heads(const Tensor& x, int64_t first, int64_t count) {
  return x.slice(2, first, first + count);
}

// x [rows, heads * width] as [rows, heads, width].
Tensor by_head(const Tensor& x, int64_t num_heads, int64_t width) {
  return x.as_strided({x.size(0), num_heads, width}, {x.stride(0), width, 1});
}

}  // namespace

LatentScratch::LatentScratch(Scratch& scratch, const LatentConfig& config, int64_t num_heads,
                             int64_t rows)
    : input(scratch.take_rows(rows, query_width(config, num_heads) + config.row_dim())),
      queries(config.query_rank > 0 ? scratch.take_rows(rows, num_heads * config.query_dim())
                                    : input.slice(1, 0, num_heads * config.query_dim())),
      attended(scratch.take_rows(rows, num_heads * config.value_dim)),
      absorbed(scratch.take(DType::f32, {absorbed_elements(config, num_heads, rows)})) {}

LatentAttention::LatentAttention(const LoadContext& context, const std::string& name,
                                 const AttentionConfig& attention, const LatentConfig& config)
    : attention_(attention),
      config_(config),
      input_(load_input(context, name, attention, config)),
      queries_(load_queries(context, name, attention.num_heads, config)),
      norm_(load_norm(context, name + ".kv_a_layernorm", config.rank, config)),
      output_(load_output(context, name, attention, config)) {
  if (config.query_rank > 0) {
    query_norm_ = load_norm(context, name + ".q_a_layernorm", config.query_rank, config);
  }
  auto [keys, values] = load_heads(context, name, attention.num_heads, config);
  keys_ = std::move(keys);
  values_ = std::move(values);
}

void LatentAttention::make_queries(Backend& backend, const PositionInputs& positions,
                                   const BlockAdapters& adapters,
                                   const LatentScratch& taken) const {
  if (queries_) {
    const Tensor latents = taken.input.slice(1, 0, config_.query_rank);
    query_norm_->forward(backend, latents, latents);
    queries_->forward(backend, latents, taken.queries);
    adapters.add(backend, BlockProduct::queries, latents, taken.queries);
  }
  const Tensor heads = by_head(taken.queries, attention_.num_heads, config_.query_dim());
  if (positions.rope_table != nullptr) {
    backend.rope(*positions.rope_table, attention_.rope_pairs,
                 part_of_heads(heads, config_.nope_dim, config_.rope_dim));
  }
  if (positions.query_factors.empty()) return;
  backend.scale(taken.queries, positions.query_factors, taken.queries);
}

void LatentAttention::store_latents(Backend& backend, const PositionInputs& positions,
                                    Indices<int64_t> slots, const KvStore& store,
                                    const LatentScratch& taken) const {
  const int64_t first = query_width(config_, attention_.num_heads);
  const Tensor rows = taken.input.slice(1, first, first + config_.row_dim());
  const Tensor latents = rows.slice(1, 0, config_.rank);
  norm_.forward(backend, latents, latents);
  const Tensor key = by_head(rows, 1, config_.row_dim());
  if (positions.rope_table != nullptr) {
    backend.rope(*positions.rope_table, attention_.rope_pairs,
                 part_of_heads(key, config_.rank, config_.rope_dim));
  }
  backend.store_kv(key, Tensor(), slots, store);
}

void LatentAttention::absorb_queries(Backend& backend, HeadRange heads, const Tensor& queries,
                                     const Tensor& absorbed) const {
  const Tensor all = by_head(queries, attention_.num_heads, config_.query_dim());
  for (int64_t i = 0; i < heads.count; ++i) {
    const int64_t head = heads.first + i;
    backend.matmul(part_of_head(all, head, 0, config_.nope_dim), keys_[static_cast<size_t>(head)],
                   nullptr, part_of_head(absorbed, i, 0, config_.rank));
    backend.scale(part_of_head(all, head, config_.nope_dim, config_.rope_dim), std::array{1.0f},
                  part_of_head(absorbed, i, config_.rank, config_.rope_dim));
  }
}

void LatentAttention::make_values(Backend& backend, HeadRange heads, const Tensor& read,
                                  const Tensor& attended) const {
  for (int64_t i = 0; i < heads.count; ++i) {
    const int64_t head = heads.first + i;
    backend.matmul(part_of_head(read, i, 0, config_.rank), values_[static_cast<size_t>(head)],
                   nullptr,
                   attended.slice(1, head * config_.value_dim, (head + 1) * config_.value_dim));
  }
}

void LatentAttention::forward(Backend& backend, const Tensor& x, const PositionInputs& positions,
                              const BatchArrays::Group& group, const BlockAdapters& adapters,
                              const KvStore& store, Scratch& scratch, const Tensor& out) const {
  const Scratch::Frame frame(scratch);
  const int64_t rows = x.size(0), num_heads = attention_.num_heads, width = config_.row_dim();
  const LatentScratch taken(scratch, config_, num_heads, rows);
  input_.forward(backend, x, taken.input);
  adapters.add(backend, BlockProduct::qkv, x, taken.input);
  make_queries(backend, positions, adapters, taken);
  store_latents(backend, positions, group.slots, store, taken);

  const int64_t most = heads_at_once(config_, num_heads, rows);
  for (int64_t first = 0; first < num_heads; first += most) {
    const HeadRange heads = {first, std::min(most, num_heads - first)};
    const Tensor absorbed =
        taken.absorbed.as_strided({rows, heads.count, width}, {heads.count * width, width, 1});
    absorb_queries(backend, heads, taken.queries, absorbed);
    const Tensor read = part_of_heads(absorbed, 0, config_.rank);
    backend.attention(absorbed, store, group.slices, attention_.params, read);
    make_values(backend, heads, read, taken.attended);
  }
  output_.forward(backend, taken.attended, out);
  adapters.add(backend, BlockProduct::output, taken.attended, out);
}

void LatentAttention::list_weights(std::vector<const PackedMatrix*>& weights) const {
  const auto list = [&](const Linear& product) {
    for (const PackedMatrix& weight : product.weights()) weights.push_back(&weight);
  };
  list(input_);
  if (queries_) list(*queries_);
  for (const PackedMatrix& matrix : keys_) weights.push_back(&matrix);
  for (const PackedMatrix& matrix : values_) weights.push_back(&matrix);
  list(output_);
}

}  // namespace paceline
