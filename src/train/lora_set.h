// LoraSet is the trained matrices of low-rank adaptation (Hu et al., "LoRA", 2021) beside a
// decoder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/adapter.h"
#include "models/decoder.h"
#include "train/trained_matrix.h"
#include "train/trained_set.h"

namespace paceline {

struct LoraShape {
  int64_t rank = 8;
  double alpha = 16;
};

struct LoraOptions {
  // Of a module by its canonical name, as "layers.3.self_attn.q_proj"; nothing: it isn't adapted.
  std::function<std::optional<LoraShape>(std::string_view module)> shape_of;
  bool use_rslora =
      false;  // the scale is alpha / sqrt(rank) (Kalajdzievski, 2023), not alpha / rank
  DType dtype = DType::bf16;  // float32 or bfloat16: in which products read A and B
  uint64_t seed = 0;
};

// One projection's pair.
struct LoraPairRef {
  std::string module;
  LoraShape shape;
  double scale = 0;
  TrainedMatrix* a = nullptr;  // [rank, in]
  TrainedMatrix* b = nullptr;  // [out, rank]
};

class LoraSet final : public TrainedSet {
 public:
  // A is Kaiming normal, a function of the seed and the module's name; B is zero. `decoder` must
  // outlive it. Throws Error invalid when no module is adapted, or a rank is out of range.
  LoraSet(Backend& backend, const Decoder& decoder, const LoraOptions& options);

  const std::vector<LoraPairRef>& pairs() const { return pairs_; }  // by module
  // Takes the values of an adapter, and packs them. Throws Error invalid naming the module where
  // the two differ in modules, ranks or scales.
  void load(Backend& backend, const Adapter& adapter);
  void pack(Backend& backend) override;

 private:
  struct Module {
    std::string name;
    std::vector<LoraProjection>* projections;
    int64_t first_column;
    int64_t out_features;
    int64_t in_features;
    PackedOrder order;  // of the outputs
  };
  void add_pair(Backend& backend, const Module& module, const LoraShape& shape,
                const LoraOptions& options);

  std::vector<std::unique_ptr<TrainedMatrix>> owned_;
  std::vector<LoraPairRef> pairs_;
};

// The canonical names of a decoder's linear modules, in the order of its layers; the experts that a
// mixture chooses among have others.
std::vector<std::string> linear_modules(const DecoderConfig& config);
// Those of these experts. gate_up_proj is gate_proj and up_proj as one module.
std::vector<std::string> expert_modules(const DecoderConfig& config);

}  // namespace paceline
