// WeightSet is all weights of a decoder as trained parameters, for full fine-tuning.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/decoder.h"
#include "train/packed_order.h"
#include "train/trained_set.h"

namespace paceline {

// The values are float32. Passes read them rounded to the decoder's type, which is how they are
// saved and served: pack() replaces the decoder's own weights.
class WeightSet final : public TrainedSet {
 public:
  // Begins with the decoder's values. `decoder` must outlive it. Throws Error unsupported when a
  // matrix isn't plain float32 or bfloat16, naming its format.
  WeightSet(Backend& backend, Decoder& decoder);

  // Draws all values from the seed and packs them: matrices that read the residual stream are
  // normal with deviation 0.5 / sqrt(inputs), those that write to it zero, embedding and head
  // normal with deviation 0.02, norms one, biases zero. Each is a function of the seed and its
  // path.
  void draw(Backend& backend, uint64_t seed);

  DType dtype() const { return dtype_; }  // in which passes read the values

  void clear_gradients() override;
  void complete_gradients() override;
  void pack(Backend& backend) override;

 private:
  // Float32 of one shape.
  struct Values {
    OwnedTensor value;
    OwnedTensor gradient;
  };
  // Projections that are packed together are rows of one matrix.
  struct TrainedLinear {
    Linear* linear;
    Values weight;  // [out_features, in_features]
    Values bias;    // [out_features] if there is one
  };
  struct TrainedNorm {
    Norm* norm;
    Values weight;  // [width], as files store it
    Values bias;    // [width] if there is one
  };
  struct TrainedMixer {
    Mixer* mixer;
    std::vector<Values> weights = {};  // of Mixer::own_weights(), as passes have them
  };
  // A parameter that passes have in another order than the files.
  struct Reordered {
    PackedOrder order;
    Values stored;           // as the files have it
    Tensor value, gradient;  // as passes have them
  };
  // How a parameter begins from scratch: normal around `mean`.
  struct Start {
    float mean = 0;
    float deviation = 0;
  };

  // Rows of a product's weights that are a parameter: PATH.weight, and PATH.bias if there is one.
  struct Part {
    std::string path;
    int64_t first_row = 0;
    int64_t num_rows = 0;
    float deviation = 0;
    PackedOrder order = {};
    bool has_bias = true;  // where the product has one
  };

  Values allocate(const Extents& shape) const;
  Values copy_of(const PackedMatrix& matrix) const;
  std::string path_of(int64_t layer, const std::string& part) const;
  void add_block(DecoderBlock& block, int64_t layer);
  void add_mixer(Mixer& mixer, int64_t layer, BlockTraining& training);
  // `layer` is the prefix of its name.
  void add_own_weight(const std::string& layer, const OwnWeight& weight, TrainedMixer& mixer);
  // A value and its gradient as the files have them, which passes have in this order.
  std::pair<Tensor, Tensor> in_order(PackedOrder order, const Extents& shape, const Tensor& value,
                                     const Tensor& gradient);
  void add_product(Linear& linear, int64_t layer, BlockProduct product, LinearTraining& training);
  void add_mixture(Mixture& mixture, int64_t layer, MixtureTraining& training);
  void add_linear(Linear& linear, const std::vector<Part>& parts, LinearTraining& training);
  void add_norm(Norm* norm, const std::string& name, NormGradient& gradient);
  void add_head_norms(std::span<Norm> norms, const std::string& name,
                      std::vector<NormGradient>& gradients);
  void add_parameter(const std::string& path, TrainedParameter::Kind kind, const Tensor& value,
                     const Tensor& gradient, const Start& start);

  Memory& memory_;
  Decoder& decoder_;
  DType dtype_;
  std::vector<std::unique_ptr<TrainedParameter>> owned_;
  std::vector<Start> starts_;  // of these
  std::vector<TrainedLinear> linears_;
  std::vector<TrainedNorm> norms_;
  std::vector<TrainedMixer> mixers_;
  std::vector<Reordered> reordered_;
  Values embedding_;
  Values head_;                // of its own
  OwnedTensor tied_gradient_;  // of the logits, where the embedding is the head
};

}  // namespace paceline
