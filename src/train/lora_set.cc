#include "train/lora_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "autodiff/new_arrays.h"
#include "base/error.h"
#include "base/siphash.h"

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

}  // namespace

std::vector<std::string> linear_modules(const DecoderConfig& config) {
  std::vector<std::string> names;
  for (int64_t layer = 0; layer < config.num_layers(); ++layer) {
    for (const char* const part :
         {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
          "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
      names.push_back(fmt::format("layers.{}.{}", layer, part));
    }
  }
  return names;
}

LoraSet::LoraSet(Backend& backend, const Decoder& decoder, const LoraOptions& options)
    : blocks_(decoder.blocks().size()) {
  const DecoderConfig& config = decoder.config();
  const int64_t hidden = config.hidden_size, inner = config.intermediate_size;
  const int64_t q = config.num_heads * config.head_dim;
  const int64_t kv = config.num_kv_heads * config.head_dim;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    BlockLoras& block = blocks_[i];
    const std::string layer = fmt::format("layers.{}.", i);
    for (const Module& module : {
             Module{layer + "self_attn.q_proj", &block.qkv, 0, q, hidden},
             Module{layer + "self_attn.k_proj", &block.qkv, q, kv, hidden},
             Module{layer + "self_attn.v_proj", &block.qkv, q + kv, kv, hidden},
             Module{layer + "self_attn.o_proj", &block.output, 0, hidden, q},
             Module{layer + "mlp.gate_proj", &block.gate_up, 0, inner, hidden},
             Module{layer + "mlp.up_proj", &block.gate_up, inner, inner, hidden},
             Module{layer + "mlp.down_proj", &block.down, 0, hidden, inner},
         }) {
      const auto shape = options.shape_of(module.name);
      if (shape) add_pair(backend, module, *shape, options);
    }
  }
  if (pairs_.empty()) {
    throw Error(
        ErrorCode::invalid,
        "target-modules: none of the model's linear modules is among them; there are q_proj, "
        "k_proj, v_proj, o_proj, gate_proj, up_proj and down_proj");
  }
  const auto by_module = [](const LoraPairRef& x, const LoraPairRef& y) {
    return x.module < y.module;
  };
  std::sort(pairs_.begin(), pairs_.end(), by_module);
  for (const LoraPairRef& pair : pairs_) {
    matrices_.push_back(pair.a);
    matrices_.push_back(pair.b);
  }
}

void LoraSet::add_pair(Backend& backend, const Module& module, const LoraShape& shape,
                       const LoraOptions& options) {
  check_shape(module.name, shape);
  const double scale = scale_of(shape, options.use_rslora);
  const auto add = [&](const char* name, Extents extents, float factor) {
    return owned_
        .emplace_back(std::make_unique<TrainedMatrix>(module.name + name, extents, options.dtype,
                                                      factor, backend.memory()))
        .get();
  };
  TrainedMatrix* const a = add(".lora_a", {shape.rank, module.in_features}, 1.0f);
  TrainedMatrix* const b =
      add(".lora_b", {module.out_features, shape.rank}, static_cast<float>(scale));
  const Hash128 key = siphash128_bytes(kPublicSipKey, std::as_bytes(std::span(module.name)));
  const autodiff::Context context{.memory = backend.memory()};
  const autodiff::Array values = autodiff::kaiming_normal(context, {shape.rank, module.in_features},
                                                          {.seed = options.seed ^ key.low});
  copy_elements(values.tensor(), a->value());
  a->pack(backend);
  b->pack(backend);
  module.projections->push_back({.first_column = module.first_column, .a = a, .b = b});
  pairs_.push_back({.module = module.name, .shape = shape, .scale = scale, .a = a, .b = b});
}

int64_t LoraSet::num_parameters() const {
  int64_t total = 0;
  for (const TrainedMatrix* const matrix : matrices_) total += matrix->value().num_elements();
  return total;
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

void LoraSet::pack(Backend& backend) {
  for (TrainedMatrix* const matrix : matrices_) matrix->pack(backend);
}

void LoraSet::clear_gradients() {
  for (TrainedMatrix* const matrix : matrices_) matrix->clear_gradient();
}

}  // namespace paceline
