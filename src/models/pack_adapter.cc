#include "models/pack_adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "adapters/adapter.h"
#include "adapters/adapter_base.h"
#include "base/error.h"
#include "kernels/backend.h"
#include "models/block_projections.h"

namespace paceline {
namespace {

// By layer.
using LayerProjections = std::vector<std::vector<BlockProjection>>;

void check_pair(const LoraPair& pair, const LayerProjections& layers) {
  const auto name = split_layer_module(pair.module);
  if (!name) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: the adapter changes this module; only projections of the layers "
                            "can be adapted when serving. Train it without {}",
                            pair.module, pair.module));
  }
  if (name->layer >= std::ssize(layers)) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: the adapter changes this module, which the model lacks; it has {} "
                            "layers",
                            pair.module, layers.size()));
  }
  const auto& projections = layers[static_cast<size_t>(name->layer)];
  const auto projection = std::ranges::find(projections, name->part, &BlockProjection::part);
  if (projection == projections.end()) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: the adapter changes this module, which layer {} lacks or which "
                            "can't be adapted; {} can",
                            pair.module, name->layer, projection_names(projections)));
  }
  const auto [out, in] = std::pair(projection->out_features, projection->in_features);
  if (pair.out() != out || pair.in() != in || pair.b.view.size(1) != pair.rank()) {
    throw Error(
        ErrorCode::invalid,
        fmt::format("{}: found A {} and B {}, expected [rank, {}] and [{}, rank]", pair.module,
                    to_string(pair.a.view.shape()), to_string(pair.b.view.shape()), in, out));
  }
  if (pair.rank() < 1 || pair.rank() > kSegmentLength) {
    throw Error(ErrorCode::invalid, fmt::format("{}: found rank {}, expected 1 to {}", pair.module,
                                                pair.rank(), kSegmentLength));
  }
}

DType packed_type(const Tensor& matrix) {
  return matrix.dtype() == DType::bf16 ? DType::bf16 : DType::f32;
}

// scale * B in float32.
std::vector<float> scaled_elements(const LoraPair& pair) {
  std::vector<float> elements(static_cast<size_t>(pair.b.view.num_elements()));
  copy_elements(pair.b.view, Tensor(elements.data(), DType::f32, pair.b.view.shape()));
  for (float& element : elements) element *= pair.scale;
  return elements;
}

// Packs the pairs of one product.
class ProductPacking {
 public:
  ProductPacking(Backend& backend, std::vector<std::unique_ptr<const PackedMatrix>>& matrices)
      : backend_(backend), matrices_(matrices) {}

  // In ascending order of the columns.
  void add(const LoraPair& pair, int64_t first_column, std::vector<AdapterPair>& pairs) {
    std::vector<float> scaled = scaled_elements(pair);
    if (std::ranges::all_of(scaled, [](float element) { return element == 0.0f; })) return;
    const Tensor b(scaled.data(), DType::f32, pair.b.view.shape());
    const DType type = packed_type(pair.a.view);
    if (!parts_.empty() && type != type_) pack_parts(pairs);
    type_ = type;
    pairs.push_back({.first_column = first_column,
                     .first_rank = ranks_,
                     .b = keep(backend_.pack_matrix(std::array{b}, packed_type(pair.b.view)))});
    parts_.push_back(pair.a.view);
    ranks_ += pair.rank();
  }

  // Stacks the matrices A since the last call: they read the same inputs, and a narrow matrix of
  // its own would be filled up to a panel.
  void pack_parts(std::vector<AdapterPair>& pairs) {
    if (parts_.empty()) return;
    const PackedMatrix* const a = keep(backend_.pack_matrix(parts_, type_));
    for (size_t i = pairs.size() - parts_.size(); i < pairs.size(); ++i) pairs[i].a = a;
    parts_.clear();
    ranks_ = 0;
  }

 private:
  const PackedMatrix* keep(PackedMatrix matrix) {
    return matrices_.emplace_back(std::make_unique<PackedMatrix>(std::move(matrix))).get();
  }

  Backend& backend_;
  std::vector<std::unique_ptr<const PackedMatrix>>& matrices_;
  std::vector<Tensor> parts_;
  DType type_ = DType::f32;
  int64_t ranks_ = 0;
};

}  // namespace

AdapterWeights pack_adapter(const Adapter& adapter, const DecoderConfig& config, Backend& backend) {
  LayerProjections layers;
  for (int64_t layer = 0; layer < config.num_layers(); ++layer) {
    layers.push_back(block_projections(config, layer));
  }
  for (const LoraPair& pair : adapter.pairs()) check_pair(pair, layers);
  AdapterWeights weights;
  for (int64_t layer = 0; layer < config.num_layers(); ++layer) {
    BlockPairs& block = weights.blocks.emplace_back();
    for (size_t product = 0; product < kNumBlockProducts; ++product) {
      ProductPacking packing(backend, weights.matrices);
      for (const BlockProjection& projection : layers[static_cast<size_t>(layer)]) {
        if (static_cast<size_t>(projection.product) != product) continue;
        const LoraPair* const pair =
            adapter.find(fmt::format("layers.{}.{}", layer, projection.part));
        if (pair != nullptr) packing.add(*pair, projection.first_column, block[product]);
      }
      packing.pack_parts(block[product]);
    }
  }
  return weights;
}

}  // namespace paceline
