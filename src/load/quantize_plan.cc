#include "load/quantize_plan.h"

#include <fmt/format.h>

#include "base/error.h"
#include "weights/mlx_recipe.h"
#include "weights/quoted_name.h"
#include "weights/weight_reader.h"

namespace paceline {
namespace {

constexpr std::string_view kWeight = ".weight";

bool can_be_quantized(const CheckpointEntry& entry, int64_t group_size) {
  return entry.name.ends_with(kWeight) && entry.shape.rank() == 2 && entry.shape[0] > 0 &&
         entry.shape[1] > 0 && entry.shape[1] % group_size == 0 &&
         !is_outside_the_decoder(entry.name);
}

MlxRecipe choose_recipe(const QuantizeOptions& options, int64_t num_layers) {
  if (options.recipe.empty()) return MlxRecipe::uniform(options.format);
  const auto mixed = MlxRecipe::mixed(options.recipe, options.format.group_size, num_layers);
  if (!mixed) {
    throw Error(ErrorCode::invalid,
                fmt::format("recipe {}: expected mixed_2_6, mixed_3_4, mixed_3_6 or mixed_4_6",
                            quoted_name(options.recipe)));
  }
  return *mixed;
}

}  // namespace

std::string QuantizeStep::module() const {
  return entry.name.substr(0, entry.name.size() - kWeight.size());
}

int64_t QuantizeStep::num_elements() const {
  int64_t product = 1;
  for (const int64_t size : entry.shape) product *= size;
  return product;
}

uint64_t QuantizeStep::bytes_before() const {
  return static_cast<uint64_t>(num_elements()) * dtype_bytes(entry.dtype);
}

uint64_t QuantizeStep::bytes_after() const {
  if (!format) return bytes_before();
  const auto elements = static_cast<uint64_t>(num_elements());
  const auto per_group = 2 * uint64_t{dtype_bytes(entry.dtype)};
  return elements * static_cast<uint64_t>(format->bits) / 8 +
         elements / static_cast<uint64_t>(format->group_size) * per_group;
}

QuantizePlan make_quantize_plan(const Checkpoint& source, const QuantizeOptions& options) {
  const MlxRecipe recipe = choose_recipe(options, count_layers(source.entries()));
  QuantizePlan plan{.usual = recipe.usual_format()};
  uint64_t shard_bytes = 0;
  for (const CheckpointEntry& entry : source.entries()) {
    if (!is_float(entry.dtype)) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("{}: tensor {} holds {}, expected float32, float16 or bfloat16",
                              source.origin(), quoted_name(entry.name), dtype_name(entry.dtype)));
    }
    QuantizeStep step{.entry = entry, .format = {}};
    if (can_be_quantized(entry, options.format.group_size)) {
      step.format = recipe.format_of(step.module());
      plan.sizes.quantized_parameters += step.num_elements();
    }
    if (shard_bytes > 0 && shard_bytes + step.bytes_after() > options.max_shard_bytes) {
      ++plan.num_shards;
      shard_bytes = 0;
    }
    step.shard = plan.num_shards - 1;
    shard_bytes += step.bytes_after();
    plan.sizes.parameters += step.num_elements();
    plan.sizes.bytes_before += step.bytes_before();
    plan.sizes.bytes_after += step.bytes_after();
    plan.steps.push_back(std::move(step));
  }
  if (plan.sizes.quantized_parameters > 0) return plan;
  throw Error(ErrorCode::invalid,
              fmt::format("{}: none of its matrices has rows of whole groups of {}; smaller groups "
                          "may fit",
                          source.origin(), options.format.group_size));
}

std::string shard_name(size_t shard, size_t num_shards) {
  if (num_shards == 1) return "model.safetensors";
  return fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, num_shards);
}

}  // namespace paceline
