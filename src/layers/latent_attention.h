// LatentAttention keeps one latent of each token; every head's keys and values are products of it
// (multi-head latent attention: DeepSeek-AI, "DeepSeek-V2", 2024; transformers'
// DeepseekV3Attention).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "layers/attention.h"

namespace paceline {

struct LatentConfig {
  int64_t query_rank = 0;  // of the queries' latent; 0: they are a product of the input
  int64_t rank = 0;        // elements of a latent
  int64_t nope_dim = 0;    // of a head's query and key that don't rotate
  int64_t rope_dim = 0;    // of those that rotate; all heads share one such key
  int64_t value_dim = 0;   // of a head
  bool has_bias = false;   // of the products of the input and of the last one
  float norm_eps = 1e-6f;  // of the latents

  int64_t query_dim() const { return nope_dim + rope_dim; }  // of a head
  // What the cache holds of a token: the latent, and behind it the shared key.
  int64_t row_dim() const { return rank + rope_dim; }

  bool operator==(const LatentConfig&) const = default;
};

// What forward() takes of the arena, for `rows` rows.
struct LatentScratch {
  Tensor input;     // [rows, queries or their latent, row_dim()]
  Tensor queries;   // [rows, heads * query_dim()]; a part of the input without a query_rank
  Tensor attended;  // [rows, heads * value_dim]
  Tensor absorbed;  // elements for some heads' queries of row_dim() elements

  LatentScratch(Scratch& scratch, const LatentConfig& config, int64_t num_heads, int64_t rows);
};

// A head's key is a product of the latent with a matrix of its own. Instead, its query is
// multiplied by the matrix, and attends to the latents, which are all heads' keys and values; what
// it reads is multiplied by the matrix of the values. Every row, of a prompt or decoded, is
// computed so. Both products round their inputs as others of their weights' type do.
class LatentAttention {
 public:
  // `name` is the canonical prefix, e.g. "layers.0.self_attn". Of `attention` it uses the hidden
  // size, the number of heads, the params and the rope's pairs.
  LatentAttention(const LoadContext& context, const std::string& name,
                  const AttentionConfig& attention, const LatentConfig& config);

  // x, out [rows, hidden], in place.
  void forward(Backend& backend, const Tensor& x, const PositionInputs& positions,
               const BatchArrays::Group& group, const BlockAdapters& adapters, const KvStore& store,
               Scratch& scratch, const Tensor& out) const;

  // Those of its block's input and output.
  std::array<const Linear*, 2> products() const { return {&input_, &output_}; }
  std::array<Linear*, 2> products() { return {&input_, &output_}; }
  void list_weights(std::vector<const PackedMatrix*>& weights) const;

 private:
  // Heads whose queries are absorbed at a time.
  struct HeadRange {
    int64_t first = 0;
    int64_t count = 0;
  };
  void make_queries(Backend& backend, const PositionInputs& positions,
                    const BlockAdapters& adapters, const LatentScratch& taken) const;
  void store_latents(Backend& backend, const PositionInputs& positions, Indices<int64_t> slots,
                     const KvStore& store, const LatentScratch& taken) const;
  // Writes queries of row_dim() elements to `absorbed` [rows, heads, row_dim()].
  void absorb_queries(Backend& backend, HeadRange heads, const Tensor& queries,
                      const Tensor& absorbed) const;
  // read [rows, heads, rank] -> the heads' columns of attended
  void make_values(Backend& backend, HeadRange heads, const Tensor& read,
                   const Tensor& attended) const;

  AttentionConfig attention_;
  LatentConfig config_;
  Linear input_;  // queries or their latent, then the latent and the shared key
  std::optional<Norm> query_norm_;
  std::optional<Linear> queries_;  // of their latent
  Norm norm_;
  std::vector<PackedMatrix> keys_;    // of each head [rank, nope_dim]
  std::vector<PackedMatrix> values_;  // [value_dim, rank]
  Linear output_;
};

}  // namespace paceline
