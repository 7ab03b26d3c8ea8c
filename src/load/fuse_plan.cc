#include "load/fuse_plan.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <span>
#include <utility>

#include "adapters/adapter_base.h"
#include "adapters/expert_names.h"
#include "base/error.h"
#include "load/gguf_conversion.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

constexpr std::string_view kHead = "lm_head.weight";
constexpr std::string_view kEmbedding = "embed_tokens.weight";

// A pair, or the rows of one that change one weight of the base.
struct PairRows {
  const LoraPair* pair = nullptr;
  int64_t first_row = 0;
  int64_t num_rows = 0;
};

// By the base's names of their weights.
using PairsByName = std::map<std::string, PairRows, std::less<>>;

// The base's name of an expert's weight, which files of some families call otherwise.
std::string expert_weight(const std::string& module, const Checkpoint& base,
                          const WeightReader& names) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kProjections = {
      {{"gate_proj", "w1"}, {"down_proj", "w2"}, {"up_proj", "w3"}}};
  std::string name = names.file_name(module + ".weight");
  if (base.contains(name)) return name;
  for (const std::string_view experts : kOtherExpertsParts) {
    std::string other = module;
    other.replace(other.find(kExpertsPart), kExpertsPart.size(), experts);
    if (std::string same = names.file_name(other + ".weight"); base.contains(same)) return same;
    for (const auto& [canonical, stored] : kProjections) {
      if (!other.ends_with(canonical)) continue;
      other.replace(other.size() - canonical.size(), canonical.size(), stored);
      if (std::string numbered = names.file_name(other + ".weight"); base.contains(numbered)) {
        return numbered;
      }
      break;
    }
  }
  return name;
}

// The base's name of another weight; files have several of a router, and two of LFM3's gates.
std::string module_weight(const std::string& module, const Checkpoint& base,
                          const WeightReader& names) {
  std::string name = names.file_name(module + ".weight");
  const auto layer = split_layer_module(module);
  if (base.contains(name) || !layer) return name;
  const auto find_other = [&](std::span<const std::string_view> parts) {
    for (const std::string_view part : parts) {
      std::string other = names.file_name(fmt::format("layers.{}.{}.weight", layer->layer, part));
      if (base.contains(other)) return other;
    }
    return name;
  };
  constexpr std::array<std::string_view, 1> kHeadGates = {"self_attn.gate_proj"};
  if (layer->part == "self_attn.g_proj") return find_other(kHeadGates);
  return layer->part == kRouterPart ? find_other(kSparseRouterParts) : name;
}

PairsByName pairs_by_name(const Adapter& adapter, const Checkpoint& base,
                          const WeightReader& names) {
  constexpr std::string_view kBoth = ".gate_up_proj";
  PairsByName pairs;
  const auto add = [&](const std::string& name, const PairRows& rows) {
    if (pairs.emplace(name, rows).second) return;
    throw Error(ErrorCode::invalid,
                fmt::format("{}: the adapter changes {} twice; expected gate_up_proj alone, or "
                            "gate_proj and up_proj",
                            rows.pair->module, quoted_name(name)));
  };
  for (const LoraPair& pair : adapter.pairs()) {
    const std::string& module = pair.module;
    if (!without_expert(module)) {
      add(module_weight(module, base, names), {&pair, 0, pair.out()});
    } else if (!module.ends_with(kBoth)) {
      add(expert_weight(module, base, names), {&pair, 0, pair.out()});
    } else {  // the base's experts have gate and up one by one
      const std::string expert = module.substr(0, module.size() - kBoth.size());
      const int64_t half = pair.out() / 2;
      add(expert_weight(expert + ".gate_proj", base, names), {&pair, 0, half});
      add(expert_weight(expert + ".up_proj", base, names), {&pair, half, half});
    }
  }
  return pairs;
}

// Whether a matrix is stored as it can be written: MLX's words, scales and biases.
bool is_affine(const GroupedRows* rows) {
  constexpr size_t kAffineParts = 3;
  return rows != nullptr && rows->stored_bytes().size() == kAffineParts;
}

class Planner {
 public:
  Planner(Checkpoint& base, const ModelSource& source, const FuseOptions& options)
      : base_(base), source_(source), options_(options), shards_(options.max_shard_bytes) {}

  void add(const CheckpointEntry& entry, std::string name, const PairRows& change) {
    const LoraPair* const pair = change.pair;
    if (pair != nullptr) check_shape(entry, change);
    const auto rows =
        entry.shape.rank() == 2 ? base_.read_grouped(entry.name, entry.shape) : nullptr;
    FuseStep step{.entry = entry, .pair = pair, .first_row = change.first_row};
    WrittenTensor tensor{
        .name = std::move(name), .shape = entry.shape, .dtype = entry.dtype, .format = {}};
    if (is_affine(rows.get()) && pair == nullptr && (options_.format || !options_.dtype)) {
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
  void check_shape(const CheckpointEntry& entry, const PairRows& change) const {
    const LoraPair& pair = *change.pair;
    const Extents expected = {change.num_rows, pair.in()};
    if (entry.shape == expected) return;
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: tensor {} has shape {}, but config.json and the adapter's {} need "
                            "{}",
                            base_.origin(), quoted_name(entry.name), to_string(entry.shape),
                            pair.module, to_string(expected)));
  }

  // Of numbers that aren't copied as packed.
  void choose_form(bool was_quantized, FuseStep& step, WrittenTensor& tensor) const {
    tensor.dtype = options_.dtype.value_or(was_quantized ? DType::bf16 : step.entry.dtype);
    if (options_.format && can_be_quantized(step.entry, options_.format->group_size)) {
      tensor.format = options_.format;
    }
    if (source_.gguf() != nullptr) {
      step.form = gguf_form(find_gguf_architecture(source_.gguf()->metadata()), step.entry.name);
    }
    if (step.form == GgufForm::rate) tensor.name += "_log";
    step.is_copied = step.pair == nullptr && !was_quantized && !tensor.format &&
                     step.form == GgufForm::same && tensor.dtype == step.entry.dtype;
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
  PairsByName pairs = pairs_by_name(adapter, base, names);
  Planner planner(base, source, options);
  for (const CheckpointEntry& entry : base.entries()) {
    const auto at = pairs.find(entry.name);
    planner.add(entry, entry.name, at == pairs.end() ? PairRows() : at->second);
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
