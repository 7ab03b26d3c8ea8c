// PositionEmbedding adds a vector to each row, by its position, by the type of its token or by
// both: a learned one (Devlin et al., "BERT", 2019), or of sinusoids (Vaswani et al., 2017).
#pragma once

#include <cstdint>

#include "kernels/operands.h"
#include "layers/scratch.h"
#include "tensor/tensor.h"

namespace paceline {

class Backend;
struct LoadContext;

struct PositionEmbeddingConfig {
  int64_t num_positions = 0;  // 0: types alone
  int64_t first = 0;          // rows of embed_positions before the first position's
  // Positions are sines, then cosines, of as many frequencies from 1 down to 1/10000 (transformers'
  // modeling_xglm), and the files have no embed_positions.
  bool sinusoids = false;
  int64_t zero_row = -1;  // of sinusoids, counted from `first` rows before the first position's
  int64_t num_types = 0;  // rows of embed_types; 0: there is none
  int64_t width = 0;
};

class PositionEmbedding {
 public:
  // embed_positions.weight [first + num_positions, width], embed_types.weight [num_types, width].
  PositionEmbedding(const LoadContext& context, const PositionEmbeddingConfig& config);

  // x += the vectors of the rows' positions and types (BatchArrays::token_types).
  //                                       x, scratch [rows, width]
  void add_forward(Backend& backend, const BatchArrays& batch, const Tensor& x,
                   const Tensor& scratch) const;
  // The same of tokens of the first type.
  void add_forward(Backend& backend, Indices<int32_t> positions, const Tensor& x,
                   const Tensor& scratch) const;

 private:
  int64_t num_positions_;
  OwnedTensor table_;  // [types * num_positions * width]: the sums of both, or those of one
  Tensor rows_;        // the same as [types * num_positions, width]
};

}  // namespace paceline
