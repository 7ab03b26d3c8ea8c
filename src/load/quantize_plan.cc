#include "load/quantize_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
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

// A matrix or bias of an expert, in a stack of all experts.
struct StackPart {
  std::string block;   // "model.layers.0.mlp"
  std::string expert;  // the index
  std::string part;    // "gate_proj.weight"
};

// Mixtral's files have other names for the projections.
constexpr std::pair<std::string_view, std::string_view> kProjections[] = {
    {"gate_proj", "gate_proj"}, {"up_proj", "up_proj"}, {"down_proj", "down_proj"},
    {"w1", "gate_proj"},        {"w3", "up_proj"},      {"w2", "down_proj"}};

// Nothing for other names than "BLOCK.experts.INDEX.PROJECTION.(weight|bias)".
std::optional<StackPart> find_stack_part(std::string_view name) {
  constexpr std::string_view kExperts = ".experts.";
  const size_t at = name.find(kExperts);
  if (at == name.npos) return std::nullopt;
  const std::string_view rest = name.substr(at + kExperts.size());
  const size_t dot = std::min(rest.find('.'), rest.size());
  const size_t kind_at = std::min(rest.rfind('.'), rest.size());
  const std::string_view kind = rest.substr(kind_at);
  if (kind_at <= dot || (kind != ".weight" && kind != ".bias")) return std::nullopt;
  const std::string_view projection = rest.substr(dot + 1, kind_at - dot - 1);
  for (const auto& [theirs, ours] : kProjections) {
    if (projection != theirs) continue;
    return StackPart{std::string(name.substr(0, at)), std::string(rest.substr(0, dot)),
                     fmt::format("{}{}", ours, kind)};
  }
  return std::nullopt;
}

// The tensors of experts 0, 1, ... as one; nothing where their shapes or formats differ.
std::optional<WrittenTensor> stacked(const std::string& name,
                                     const std::map<std::string, WrittenTensor>& experts) {
  const WrittenTensor& first = experts.begin()->second;
  WrittenTensor stack = first;
  stack.name = name;
  std::vector<int64_t> extents = {std::ssize(experts)};
  extents.insert(extents.end(), first.shape.begin(), first.shape.end());
  stack.shape = Extents(extents);
  for (size_t i = 0; i < experts.size(); ++i) {
    const auto at = experts.find(std::to_string(i));
    if (at == experts.end() || !(at->second.shape == first.shape) ||
        at->second.format != first.format || at->second.dtype != first.dtype) {
      return std::nullopt;
    }
    stack.experts.push_back(at->second.name);
  }
  return stack;
}

// Replaces the tensors of experts by stacks, as mlx-lm has them: "BLOCK.switch_mlp.up_proj.weight",
// or "BLOCK.experts.up_proj.weight" where experts have biases (gpt-oss).
std::vector<WrittenTensor> with_stacks(std::vector<WrittenTensor> tensors) {
  std::set<std::string> biased;  // blocks
  for (const WrittenTensor& tensor : tensors) {
    const auto part = find_stack_part(tensor.name);
    if (part && part->part.ends_with(".bias")) biased.insert(part->block);
  }
  std::map<std::string, std::map<std::string, WrittenTensor>> stacks;
  std::vector<WrittenTensor> written;
  for (WrittenTensor& tensor : tensors) {
    if (const auto part = find_stack_part(tensor.name)) {
      const std::string_view parent = biased.contains(part->block) ? "experts" : "switch_mlp";
      const std::string name = fmt::format("{}.{}.{}", part->block, parent, part->part);
      stacks[name].emplace(part->expert, std::move(tensor));
    } else {
      written.push_back(std::move(tensor));
    }
  }
  for (auto& [name, experts] : stacks) {
    if (auto stack = stacked(name, experts)) {
      written.push_back(std::move(*stack));
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
