#include "load/quantize_plan.h"

#include <fmt/format.h>

#include "base/error.h"
#include "weights/mlx_recipe.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

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

QuantizePlan make_quantize_plan(const Checkpoint& source, const QuantizeOptions& options) {
  const MlxRecipe recipe = choose_recipe(options, count_layers(source.entries()));
  QuantizePlan plan{.usual = recipe.usual_format()};
  ShardFiller shards(options.max_shard_bytes);
  for (const CheckpointEntry& entry : source.entries()) {
    if (!is_float(entry.dtype)) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("{}: tensor {} holds {}, expected float32, float16 or bfloat16",
                              source.origin(), quoted_name(entry.name), dtype_name(entry.dtype)));
    }
    WrittenTensor tensor{
        .name = entry.name, .shape = entry.shape, .dtype = entry.dtype, .format = {}};
    plan.sizes.parameters += tensor.num_elements();
    plan.sizes.bytes_before += tensor.bytes();
    if (can_be_quantized(entry, options.format.group_size)) {
      tensor.format = recipe.format_of(tensor.module());
      plan.sizes.quantized_parameters += tensor.num_elements();
    }
    plan.sizes.bytes_after += tensor.bytes();
    tensor.shard = shards.add(tensor.bytes());
    plan.tensors.push_back(std::move(tensor));
  }
  plan.num_shards = shards.num_shards();
  if (plan.sizes.quantized_parameters > 0) return plan;
  throw Error(ErrorCode::invalid,
              fmt::format("{}: none of its matrices has rows of whole groups of {}; smaller groups "
                          "may fit",
                          source.origin(), options.format.group_size));
}

}  // namespace paceline
