#include "models/pack_adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "adapters/adapter.h"
#include "adapters/adapter_base.h"
#include "base/error.h"
#include "kernels/backend.h"
#include "models/block_projections.h"

namespace paceline {
namespace {

// A pair and the projection that it changes.
struct PlacedPair {
  const LoraPair* pair = nullptr;
  int64_t layer = 0;
  BlockProjection projection;
};

PlacedPair place_pair(const LoraPair& pair, const DecoderConfig& config) {
  const auto name = split_layer_module(pair.module);
  if (!name) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: the adapter changes this module; only projections of the layers "
                            "can be adapted when serving. Train it without {}",
                            pair.module, pair.module));
  }
  if (name->layer >= config.num_stored_layers()) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: the adapter changes this module, which the model lacks; it has {} "
                            "layers",
                            pair.module, config.num_stored_layers()));
  }
  auto found = find_stored_projection(config, name->layer, name->part);
  if (!found) {
    throw Error(
        ErrorCode::invalid,
        fmt::format("{}: the adapter changes this module, which layer {} lacks or which "
                    "can't be adapted; {} can",
                    pair.module, name->layer, stored_projection_names(config, name->layer)));
  }
  BlockProjection& projection = found->projection;
  const auto [out, in] = std::pair(projection.out_features, projection.in_features);
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
  return {.pair = &pair, .layer = found->layer, .projection = std::move(projection)};
}

// Sorts the pairs of a layer by expert, product and column. Throws Error invalid where two change
// the same columns: a pair of an expert's gate and up together, and one of the gate alone.
void sort_pairs(std::vector<PlacedPair>& pairs) {
  const auto place_of = [](const PlacedPair& placed) {
    const BlockProjection& at = placed.projection;
    return std::tuple(at.expert, at.product, at.first_column);
  };
  std::ranges::stable_sort(pairs, {}, place_of);
  for (size_t i = 1; i < pairs.size(); ++i) {
    const BlockProjection &before = pairs[i - 1].projection, &at = pairs[i].projection;
    if (before.expert != at.expert || before.product != at.product ||
        before.first_column + before.out_features <= at.first_column) {
      continue;
    }
    throw Error(ErrorCode::invalid,
                fmt::format("{} and {}: the adapter changes the same weights twice; expected "
                            "gate_up_proj alone, or gate_proj and up_proj",
                            pairs[i - 1].pair->module, pairs[i].pair->module));
  }
}

size_t num_experts(const MixtureConfig& config) {
  const int64_t shared = config.routing.shared == SharedExpert::none ? 0 : 1;
  return static_cast<size_t>(config.routing.num_experts + shared);
}

DType packed_type(const Tensor& matrix) {
  return matrix.dtype() == DType::bf16 ? DType::bf16 : DType::f32;
}

// scale * B in float32, its rows in the order of the product's columns.
std::vector<float> scaled_elements(const LoraPair& pair, const BlockProjection& at) {
  const Tensor& b = pair.b.view;
  std::vector<float> elements(static_cast<size_t>(b.num_elements()));
  const Tensor out(elements.data(), DType::f32, b.shape());
  int64_t row = 0;
  for (const auto& [first, count] : at.order) {
    copy_elements(b.slice(0, first, first + count), out.slice(0, row, row + count));
    row += count;
  }
  if (at.order.empty()) copy_elements(b, out);
  for (float& element : elements) element *= pair.scale;
  return elements;
}

// Packs the pairs of one product.
class ProductPacking {
 public:
  ProductPacking(Backend& backend, std::vector<std::unique_ptr<const PackedMatrix>>& matrices)
      : backend_(backend), matrices_(matrices) {}

  // In ascending order of the columns.
  void add(const PlacedPair& placed, std::vector<AdapterPair>& pairs) {
    const LoraPair& pair = *placed.pair;
    std::vector<float> scaled = scaled_elements(pair, placed.projection);
    if (std::ranges::all_of(scaled, [](float element) { return element == 0.0f; })) return;
    const Tensor b(scaled.data(), DType::f32, pair.b.view.shape());
    const DType type = packed_type(pair.a.view);
    if (!parts_.empty() && type != type_) pack_parts(pairs);
    type_ = type;
    pairs.push_back({.first_column = placed.projection.first_column,
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
  std::vector<std::vector<PlacedPair>> layers(static_cast<size_t>(config.num_layers()));
  for (const LoraPair& pair : adapter.pairs()) {
    PlacedPair placed = place_pair(pair, config);
    layers[static_cast<size_t>(placed.layer)].push_back(std::move(placed));
  }
  AdapterWeights weights;
  for (std::vector<PlacedPair>& pairs : layers) {
    sort_pairs(pairs);
    BlockPairs& block = weights.blocks.emplace_back();
    std::vector<BlockPairs>& experts = weights.experts.emplace_back();
    const bool has_experts = !pairs.empty() && pairs.back().projection.expert != kNoExpert;
    if (has_experts) experts.resize(num_experts(*config.mixture));
    for (size_t i = 0; i < pairs.size();) {
      const BlockProjection& first = pairs[i].projection;
      BlockPairs& products =
          first.expert == kNoExpert ? block : experts[static_cast<size_t>(first.expert)];
      std::vector<AdapterPair>& packed = products[static_cast<size_t>(first.product)];
      ProductPacking packing(backend, weights.matrices);
      for (; i < pairs.size(); ++i) {
        const BlockProjection& at = pairs[i].projection;
        if (at.expert != first.expert || at.product != first.product) break;
        packing.add(pairs[i], packed);
      }
      packing.pack_parts(packed);
    }
  }
  return weights;
}

}  // namespace paceline
