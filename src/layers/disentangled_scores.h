// DisentangledScores add to the scores of attention what queries and keys meet in embeddings of
// distances (He et al., "DeBERTa", 2021; transformers' modeling_deberta_v2).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/operands.h"
#include "kernels/packed_matrix.h"
#include "layers/scratch.h"

namespace paceline {

class Backend;
struct LoadContext;

struct DisentangledConfig {
  int64_t hidden_size = 0;
  int64_t num_heads = 0;
  int64_t head_dim = 0;
  int64_t reach = 0;         // the longest distance
  int64_t span = 0;          // half the number of embeddings
  int64_t log_distance = 0;  // that of the last bucket, where distances have buckets; 0: they don't
  bool meets_queries = true;   // "c2p"
  bool meets_keys = true;      // "p2c"
  bool shares_weights = true;  // the projections of queries and keys are those of embeddings, too
  bool has_norm = false;       // of the embeddings
  float norm_eps = 1e-7f;

  int64_t num_embeddings() const { return 2 * span; }
  // Columns of the terms of a row.
  int64_t row_width() const {
    return num_heads * num_embeddings() * ((meets_queries ? 1 : 0) + (meets_keys ? 1 : 0));
  }

  bool operator==(const DisentangledConfig&) const = default;
};

class DisentangledScores {
 public:
  // `name` is the attention's. Reads rel_embeddings.weight [num_embeddings, hidden], perhaps
  // rel_norm, and q_proj and k_proj, or pos_query_proj and pos_key_proj.
  DisentangledScores(const LoadContext& context, const std::string& name,
                     const DisentangledConfig& config);

  // Computes the terms of a batch's queries and keys in `terms` [rows, row_width()]; what is
  // returned reads them.                  q, k [rows, heads, head_dim]
  PositionScores forward(Backend& backend, const Tensor& q, const Tensor& k,
                         const Tensor& terms) const;

 private:
  Tensor project(Backend& backend, const std::vector<PackedMatrix>& embeddings, const Tensor& heads,
                 const Tensor& terms, int64_t first) const;

  DisentangledConfig config_;
  std::vector<PackedMatrix> of_queries_, of_keys_;  // [num_embeddings, head_dim] of each head
  std::vector<int32_t> buckets_;                    // PositionScores::buckets
};

// The bucket of a query `distance` behind its key, between -span and span: distances up to half the
// span have their own, those beyond grow by a factor up to `log_distance`.
int64_t log_bucket(int64_t distance, int64_t span, int64_t log_distance);

}  // namespace paceline
