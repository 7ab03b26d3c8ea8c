#include "load/fuse_plan.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/error.h"
#include "load/gguf_conversion.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

constexpr std::string_view kHead = "lm_head.weight";
constexpr std::string_view kEmbedding = "embed_tokens.weight";

// The pairs by the base's names of their weights.
using PairsByName = std::map<std::string, const LoraPair*, std::less<>>;

PairsByName pairs_by_name(const Adapter& adapter, const WeightReader& names) {
  PairsByName pairs;
  for (const LoraPair& pair : adapter.pairs()) {
    pairs[names.file_name(pair.module + ".weight")] = &pair;
  }
  return pairs;
}

class Planner {
 public:
  Planner(Checkpoint& base, const ModelSource& source, const FuseOptions& options)
      : base_(base), source_(source), options_(options), shards_(options.max_shard_bytes) {}

  void add(const CheckpointEntry& entry, std::string name, const LoraPair* pair) {
    if (pair != nullptr) check_shape(entry, *pair);
    const auto rows =
        entry.shape.rank() == 2 ? base_.read_grouped(entry.name, entry.shape) : nullptr;
    FuseStep step{.entry = entry, .pair = pair};
    WrittenTensor tensor{
        .name = std::move(name), .shape = entry.shape, .dtype = entry.dtype, .format = {}};
    const bool is_packed = rows != nullptr && source_.gguf() == nullptr;
    if (is_packed && pair == nullptr && (options_.format || !options_.dtype)) {
      const Grouping grouping = rows->grouping();
      step.is_copied = true;
      tensor.format = {.bits = grouping.bits, .group_size = grouping.group_size};
    } else if (is_float(entry.dtype)) {
      choose_form(rows != nullptr, step, tensor);
    } else {
      step.is_copied = true;
    }
    if (rows != nullptr && !tensor.format) plan_.unpacked_dtype = tensor.dtype;
    push(std::move(step), std::move(tensor));
  }

  FusePlan finish() {
    plan_.num_shards = shards_.num_shards();
    std::map<std::pair<int, int64_t>, int> counts;
    int most = 0;
    for (const WrittenTensor& tensor : plan_.tensors) {
      if (!tensor.format) continue;
      const int count = ++counts[{tensor.format->bits, tensor.format->group_size}];
      if (count <= most) continue;
      most = count;
      plan_.usual_format = tensor.format;
    }
    if (options_.format) check_quantized();
    return std::move(plan_);
  }

  void note_new_head() { plan_.has_new_head = true; }

 private:
  void check_shape(const CheckpointEntry& entry, const LoraPair& pair) const {
    if (entry.shape == Extents{pair.out(), pair.in()}) return;
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: tensor {} has shape {}, but config.json and the adapter's {} need "
                            "{}",
                            base_.origin(), quoted_name(entry.name), to_string(entry.shape),
                            pair.module, to_string(Extents{pair.out(), pair.in()})));
  }

  // Of numbers that aren't copied as packed.
  void choose_form(bool was_quantized, FuseStep& step, WrittenTensor& tensor) const {
    tensor.dtype = options_.dtype.value_or(was_quantized ? DType::bf16 : step.entry.dtype);
    if (options_.format && can_be_quantized(step.entry, options_.format->group_size)) {
      tensor.format = options_.format;
    }
    step.minus_one =
        source_.gguf() != nullptr && is_stored_plus_one(*source_.gguf(), step.entry.name);
    step.is_copied = step.pair == nullptr && !was_quantized && !tensor.format && !step.minus_one &&
                     tensor.dtype == step.entry.dtype;
  }

  void push(FuseStep step, WrittenTensor tensor) {
    tensor.shard = shards_.add(tensor.bytes());
    plan_.sizes.parameters += tensor.num_elements();
    plan_.sizes.bytes_after += tensor.bytes();
    if (tensor.format) plan_.sizes.quantized_parameters += tensor.num_elements();
    if (step.pair != nullptr) ++plan_.sizes.num_fused;
    plan_.steps.push_back(std::move(step));
    plan_.tensors.push_back(std::move(tensor));
  }

  void check_quantized() {
    if (plan_.usual_format) {
      plan_.usual_format = options_.format;
      return;
    }
    throw Error(ErrorCode::invalid,
                fmt::format("{}: none of its matrices has rows of whole groups of {}; smaller "
                            "groups may fit",
                            base_.origin(), options_.format->group_size));
  }

  Checkpoint& base_;
  const ModelSource& source_;
  const FuseOptions& options_;
  ShardFiller shards_;
  FusePlan plan_;
};

const CheckpointEntry* find_entry(const Checkpoint& base, std::string_view name) {
  for (const CheckpointEntry& entry : base.entries()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace

FusePlan make_fuse_plan(Checkpoint& base, const ModelSource& source, const Adapter& adapter,
                        const FuseOptions& options) {
  const WeightReader names(base);
  PairsByName pairs = pairs_by_name(adapter, names);
  Planner planner(base, source, options);
  for (const CheckpointEntry& entry : base.entries()) {
    const auto at = pairs.find(entry.name);
    planner.add(entry, entry.name, at == pairs.end() ? nullptr : at->second);
    if (at != pairs.end()) pairs.erase(at);
  }
  const std::string head = names.file_name(kHead);
  for (const auto& [name, pair] : pairs) {
    const CheckpointEntry* const embedding = find_entry(base, names.file_name(kEmbedding));
    if (name != head || embedding == nullptr) {
      throw Error(ErrorCode::not_found,
                  fmt::format("{}: tensor {}, which the adapter changes, is missing", base.origin(),
                              quoted_name(name)));
    }
    planner.add(*embedding, head, pair);
    planner.note_new_head();
  }
  return planner.finish();
}

}  // namespace paceline
