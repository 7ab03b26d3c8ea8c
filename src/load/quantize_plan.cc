#include "load/quantize_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

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

// Where a matrix of an expert goes, as mlx-lm calls it: "BLOCK.switch_mlp.gate_proj.weight".
struct StackPlace {
  std::string name;
  std::string expert;  // the index
};

// Nothing for other names than "BLOCK.experts.INDEX.(gate|up|down)_proj.weight".
std::optional<StackPlace> find_stack_place(std::string_view name) {
  constexpr std::string_view kExperts = ".experts.";
  const size_t at = name.find(kExperts);
  if (at == name.npos) return std::nullopt;
  const std::string_view rest = name.substr(at + kExperts.size());
  const size_t dot = std::min(rest.find('.'), rest.size());
  const std::string_view index = rest.substr(0, dot), part = rest.substr(dot);
  if (part != ".gate_proj.weight" && part != ".up_proj.weight" && part != ".down_proj.weight") {
    return std::nullopt;
  }
  return StackPlace{fmt::format("{}.switch_mlp{}", name.substr(0, at), part), std::string(index)};
}

// Replaces packed matrices of experts 0, 1, ... by one stack where their shapes and formats are the
// same.
std::vector<WrittenTensor> with_stacks(std::vector<WrittenTensor> tensors) {
  std::map<std::string, std::map<std::string, WrittenTensor>> stacks;
  std::vector<WrittenTensor> written;
  for (WrittenTensor& tensor : tensors) {
    const auto place = tensor.format ? find_stack_place(tensor.name) : std::nullopt;
    if (place) {
      stacks[place->name].emplace(place->expert, std::move(tensor));
    } else {
      written.push_back(std::move(tensor));
    }
  }
  for (auto& [name, experts] : stacks) {
    const WrittenTensor& first = experts.begin()->second;
    WrittenTensor stack = first;
    stack.name = name;
    stack.shape = {std::ssize(experts), first.shape[0], first.shape[1]};
    for (size_t i = 0; i < experts.size(); ++i) {
      const auto at = experts.find(std::to_string(i));
      if (at == experts.end() || !(at->second.shape == first.shape) ||
          at->second.format != first.format || at->second.dtype != first.dtype) {
        break;
      }
      stack.experts.push_back(at->second.name);
    }
    if (stack.experts.size() == experts.size()) {
      written.push_back(std::move(stack));
    } else {
      for (auto& expert : experts) written.push_back(std::move(expert.second));
    }
  }
  std::ranges::sort(written, {}, &WrittenTensor::name);
  return written;
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
    plan.tensors.push_back(std::move(tensor));
  }
  plan.tensors = with_stacks(std::move(plan.tensors));
  for (WrittenTensor& tensor : plan.tensors) tensor.shard = shards.add(tensor.bytes());
  plan.num_shards = shards.num_shards();
  if (plan.sizes.quantized_parameters > 0) return plan;
  throw Error(ErrorCode::invalid,
              fmt::format("{}: none of its matrices has rows of whole groups of {}; smaller groups "
                          "may fit",
                          source.origin(), options.format.group_size));
}

}  // namespace paceline
