#include "train/lora_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "adapters/expert_names.h"
#include "autodiff/new_arrays.h"
#include "base/error.h"
#include "base/siphash.h"
#include "kernels/backend.h"
#include "models/block_projections.h"

namespace paceline {
namespace {

constexpr int64_t kMaxRank = 1024;

double scale_of(const LoraShape& shape, bool use_rslora) {
  const auto rank = static_cast<double>(shape.rank);
  return shape.alpha / (use_rslora ? std::sqrt(rank) : rank);
}

void check_shape(const std::string& module, const LoraShape& shape) {
  if (shape.rank < 1 || shape.rank > kMaxRank) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: found rank {}, expected 1 to {}", module, shape.rank, kMaxRank));
  }
  if (!std::isfinite(shape.alpha) || shape.alpha <= 0) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: found alpha {}, expected a positive number", module, shape.alpha));
  }
}

// Whether it stands around experts that read latent columns, or is the shared one beside these.
bool is_around_latent(const Mixture* mixture, const BlockProjection& at) {
  if (mixture == nullptr || mixture->latent() == nullptr || at.expert != kNoExpert) return false;
  return at.product == BlockProduct::to_latent || at.product == BlockProduct::from_latent ||
         at.product == BlockProduct::gate_up || at.product == BlockProduct::down;
}

std::vector<LoraProjection>& latent_projections_of(LatentTraining& latent, BlockProduct product) {
  if (product == BlockProduct::to_latent) return latent.to.loras;
  if (product == BlockProduct::from_latent) return latent.from.loras;
  return product == BlockProduct::down ? latent.shared.down.loras : latent.shared.gate_up.loras;
}

std::vector<LoraProjection>& projections_of(BlockTraining& block, const BlockProjection& at) {
  if (at.expert != kNoExpert) {
    ExpertTraining& expert = block.mixture.experts[static_cast<size_t>(at.expert)];
    return at.product == BlockProduct::down ? expert.down.loras : expert.gate_up.loras;
  }
  const BlockProduct product = at.product;
  switch (product) {
    case BlockProduct::qkv:
      return block.qkv.loras;
    case BlockProduct::output:
      return block.output.loras;
    case BlockProduct::scan_parts:
      return block.scan_parts.loras;
    case BlockProduct::scan_steps:
      return block.scan_steps.loras;
    case BlockProduct::gate_up:
      return block.gate_up.loras;
    case BlockProduct::router:
    case BlockProduct::to_latent:
    case BlockProduct::from_latent:
    case BlockProduct::queries:
    case BlockProduct::output_gates:
    case BlockProduct::decays:
    case BlockProduct::input_gate:
    case BlockProduct::input_projection:
    case BlockProduct::laurel_left:
    case BlockProduct::laurel_right:
      PL_CHECK(false,
               "routers, queries and gates of latents and what a block has beside its branches "
               "don't train, latent columns are a mixture's");
    case BlockProduct::down:
      break;
  }
  return block.down.loras;
}

// By the layer of the files.
std::string module_name(const DecoderConfig& config, int64_t layer, const BlockProjection& one) {
  return fmt::format("layers.{}.{}", config.stored_layer(layer), one.part);
}

// All that can be adapted.
std::vector<BlockProjection> all_projections(const DecoderConfig& config, int64_t layer) {
  std::vector<BlockProjection> all = block_projections(config, layer);
  for (BlockProjection& one : expert_projections(config, layer)) all.push_back(std::move(one));
  return all;
}

// Pairs of a product don't overlap.
void check_columns(std::string_view module, const std::vector<LoraProjection>& others,
                   const BlockProjection& projection) {
  for (const LoraProjection& other : others) {
    if (other.first_column + other.b->value().size(0) <= projection.first_column) continue;
    throw Error(ErrorCode::invalid,
                fmt::format("target-modules: {} has gate and up together, which are adapted one by "
                            "one, too; expected experts.gate_up_proj alone, or experts.gate_proj "
                            "and experts.up_proj",
                            module));
  }
}

}  // namespace

std::vector<std::string> linear_modules(const DecoderConfig& config) {
  std::vector<std::string> names;
  for (int64_t layer = 0; layer < config.num_layers(); ++layer) {
    for (const auto& projections :
         {block_projections(config, layer), shared_projections(config, layer)}) {
      for (const BlockProjection& projection : projections) {
        names.push_back(module_name(config, layer, projection));
      }
    }
  }
  return names;
}

std::vector<std::string> expert_modules(const DecoderConfig& config) {
  std::vector<std::string> names;
  for (int64_t layer = 0; layer < config.num_layers(); ++layer) {
    for (const BlockProjection& projection : expert_projections(config, layer)) {
      if (!split_expert_part(projection.part)) continue;  // the shared expert's
      names.push_back(module_name(config, layer, projection));
    }
  }
  return names;
}

LoraSet::LoraSet(Backend& backend, const Decoder& decoder, const LoraOptions& options) {
  training_.blocks.resize(decoder.blocks().size());
  for (size_t i = 0; i < training_.blocks.size(); ++i) {
    BlockTraining& block = training_.blocks[i];
    const FeedForward* const mlp = decoder.blocks()[i].mlp();
    const Mixture* const mixture = mlp != nullptr ? mlp->mixture() : nullptr;
    if (mixture != nullptr) block.mixture.experts.resize(mixture->experts().size());
    for (const BlockProjection& projection :
         all_projections(decoder.config(), static_cast<int64_t>(i))) {
      const std::string name = module_name(decoder.config(), static_cast<int64_t>(i), projection);
      const auto shape = options.shape_of(name);
      if (!shape) continue;
      std::vector<LoraProjection>& projections =
          is_around_latent(mixture, projection)
              ? latent_projections_of(block.mixture.latent, projection.product)
              : projections_of(block, projection);
      check_columns(name, projections, projection);
      add_pair(backend,
               {.name = name,
                .projections = &projections,
                .first_column = projection.first_column,
                .out_features = projection.out_features,
                .in_features = projection.in_features,
                .order = PackedOrder(projection.order)},
               *shape, options);
    }
    if (!block.mixture.has_loras()) block.mixture.experts.clear();
  }
  if (pairs_.empty()) {
    throw Error(
        ErrorCode::invalid,
        fmt::format(
            "target-modules: none of the model's linear modules is among them; there are {}",
            stored_projection_names(decoder.config(), 0)));
  }
  const auto by_module = [](const LoraPairRef& x, const LoraPairRef& y) {
    return x.module < y.module;
  };
  std::sort(pairs_.begin(), pairs_.end(), by_module);
  for (const LoraPairRef& pair : pairs_) {
    parameters_.push_back(pair.a);
    parameters_.push_back(pair.b);
  }
}

void LoraSet::add_pair(Backend& backend, const Module& module, const LoraShape& shape,
                       const LoraOptions& options) {
  check_shape(module.name, shape);
  const double scale = scale_of(shape, options.use_rslora);
  const auto add = [&](const char* name, Extents extents, float factor, PackedOrder order) {
    return owned_
        .emplace_back(std::make_unique<TrainedMatrix>(module.name + name, extents, options.dtype,
                                                      factor, backend, std::move(order)))
        .get();
  };
  TrainedMatrix* const a = add(".lora_a", {shape.rank, module.in_features}, 1.0f, {});
  TrainedMatrix* const b =
      add(".lora_b", {module.out_features, shape.rank}, static_cast<float>(scale), module.order);
  const Hash128 key = siphash128_bytes(kPublicSipKey, std::as_bytes(std::span(module.name)));
  const autodiff::Context context{.memory = backend.host_memory()};
  const autodiff::Array values = autodiff::kaiming_normal(context, {shape.rank, module.in_features},
                                                          {.seed = options.seed ^ key.low});
  copy_elements(values.tensor(), a->value());
  a->pack();
  b->pack();
  module.projections->push_back(
      {.first_column = module.first_column, .a = a, .b = b, .module = key.low});
  pairs_.push_back({.module = module.name, .shape = shape, .scale = scale, .a = a, .b = b});
}

void LoraSet::load(Backend& backend, const Adapter& adapter) {
  const auto refuse = [](const std::string& module, const std::string& found,
                         const std::string& expected) {
    throw Error(ErrorCode::invalid,
                fmt::format("the adapter: {}: found {}, expected {} as the run's options say",
                            module, found, expected));
  };
  for (const LoraPair& pair : adapter.pairs()) {
    const bool is_trained = std::any_of(pairs_.begin(), pairs_.end(), [&](const LoraPairRef& one) {
      return one.module == pair.module;
    });
    if (!is_trained) refuse(pair.module, "a pair", "none");
  }
  for (const LoraPairRef& pair : pairs_) {
    const LoraPair* const given = adapter.find(pair.module);
    if (given == nullptr) refuse(pair.module, "no pair", "one");
    if (given->rank() != pair.shape.rank) {
      refuse(pair.module, fmt::format("rank {}", given->rank()),
             fmt::format("{}", pair.shape.rank));
    }
    if (given->scale != static_cast<float>(pair.scale)) {
      refuse(pair.module, fmt::format("scale {}", given->scale), fmt::format("{}", pair.scale));
    }
    for (const auto& [from, to] :
         {std::pair{&given->a.view, pair.a}, std::pair{&given->b.view, pair.b}}) {
      if (from->shape() != to->value().shape()) {
        refuse(pair.module, to_string(from->shape()), to_string(to->value().shape()));
      }
      copy_elements(*from, to->value());
    }
  }
  pack(backend);
}

void LoraSet::pack(Backend& /*backend*/) {
  for (const auto& matrix : owned_) matrix->pack();
}

}  // namespace paceline
