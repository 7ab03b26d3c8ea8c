// Alternating updates: several residual streams, of which each block computes one and corrects the
// others (Baykal et al., "Alternating Updates for Efficient Transformers", 2023).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layers/linear.h"
#include "layers/norm.h"
#include "layers/scratch.h"

namespace paceline {

struct AltUpConfig {
  int64_t num_streams = 0;
  int64_t active = 0;             // the stream that blocks compute
  bool scales_corrected = false;  // a vector scales what a layer's input reads of it

  bool operator==(const AltUpConfig&) const = default;
};

// [rows, hidden] each.
using Streams = std::vector<Tensor>;
// Takes those of a forward.
Streams take_streams(Scratch& scratch, const AltUpConfig& config, int64_t rows,
                     int64_t hidden_size);

// What AltUp::predict() and correct() take of the arena.
struct AltUpScratch {
  Tensor normed;      // [rows, hidden]
  Tensor modalities;  // [rows, streams]
  Tensor factors;     // [rows, streams^2], contiguous

  AltUpScratch(Scratch& scratch, const AltUpConfig& config, int64_t rows, int64_t hidden_size);
};

// The part of a block.
class AltUp {
 public:
  // `block` is the canonical prefix of the block, e.g. "layers.0".
  AltUp(const LoadContext& context, const std::string& block, const AltUpConfig& config,
        int64_t hidden_size, const NormOptions& norm);

  // predicted[i] = streams[i] + the sum over j of a factor of i and j times streams[j]; factors are
  // a product of the active stream.
  void predict(Backend& backend, std::span<const Tensor> streams, Scratch& scratch,
               std::span<const Tensor> predicted) const;
  // predicted[i] += (1 + a factor of i) * (computed - predicted[active]); factors are a product of
  // what the block has computed.                                   computed [rows, hidden]
  void correct(Backend& backend, const Tensor& computed, Scratch& scratch,
               std::span<const Tensor> predicted) const;
  // What the layer's input reads of a corrected stream.            x, out [rows, hidden]
  void scale_corrected(Backend& backend, const Tensor& x, const Tensor& out) const;

 private:
  // tanh(router(norm(x) / hidden)) times the coefficients, a row's one after another in the CPU's
  // memory.
  std::vector<float> make_factors(Backend& backend, const Tensor& x, const Linear& coefficients,
                                  Scratch& scratch) const;

  AltUpConfig config_;
  int64_t hidden_size_;
  Linear router_;  // as a mixture's, float32 in any model
  Linear prediction_, correction_;
  Norm router_norm_;
  OwnedTensor correction_scale_;  // [hidden]
};

// What stands before and behind all blocks.
class AltUpEnds {
 public:
  AltUpEnds(const LoadContext& context, const AltUpConfig& config, int64_t hidden_size);

  // The first stream is `embedded`, the others are products of it with its magnitude.
  void begin(Backend& backend, const Tensor& embedded, std::span<const Tensor> streams) const;
  // out = the mean of the first stream and of products of the others, with its magnitude. Changes
  // the streams.                                                   out [rows, hidden]
  void end(Backend& backend, std::span<const Tensor> streams, const Tensor& out) const;

  std::span<const Linear> projections() const { return projections_; }
  std::span<const Linear> unembeddings() const { return unembeddings_; }

 private:
  std::vector<Linear> projections_, unembeddings_;  // of all streams but the first
};

}  // namespace paceline
