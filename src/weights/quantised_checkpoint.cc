#include "weights/quantised_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

// What follows the names of quantised modules, longer ones before their ends.
constexpr std::array kParts = std::to_array<std::string_view>({
    "weight.quant_state.bitsandbytes__nf4",
    "weight.quant_state.bitsandbytes__fp4",
    "weight.nested_quant_map",
    "weight.nested_absmax",
    "weight.quant_map",
    "weight.absmax",
    "weight_global_scale",
    "weight_zero_point",
    "weight_scale_inv",
    "weight_scale_2",
    "weight_packed",
    "weight_format",
    "weight_scale",
    "weight_shape",
    "weight_g_idx",
    "pre_quant_scale",
    "qweight",
    "qzeros",
    "scales",
    "g_idx",
    "weight",
    "SCB",
});
// What HQQ adds to a module.
constexpr std::array kHqqParts = std::to_array<std::string_view>({
    "stores_quant_config",
    "unpack_view_dtype",
    "encoded_state_dict",
    "view_as_float",
    "compute_dtype",
    "channel_wise",
    "offload_meta",
    "quant_scale",
    "quant_zero",
    "group_size",
    "round_zero",
    "optimize",
    "packing",
    "nbits",
    "shape",
    "scale",
    "zero",
    "axis",
    "W_q",
});
// What torchao calls the parts of `weight`.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kTorchaoParts = {{
    {"_weight_qdata", "weight"},
    {"_weight_scale_and_zero", "weight_scale_and_zero"},
    {"_weight_per_tensor_scale", "weight_scale_2"},
    {"_weight_act_pre_scale", "pre_quant_scale"},
    {"_weight_scale", "weight_scale"},
    {"_weight_zero_point", "weight_zero_point"},
}};
// Scales of activations, and of keys and values: products round their inputs in their own way.
constexpr std::array kUnused = std::to_array<std::string_view>({
    "input_global_scale",
    "output_scale",
    "input_scale",
    "activation_scale",
    "input_zero_point",
    "output_zero_point",
    "k_scale",
    "v_scale",
    "q_scale",
    "input_g_idx",
    "k_zero_point",
    "v_zero_point",
    "input_scale_ub",
    "_weight_act_quant_scale",
    "_weight_act_quant_zero_point",
    "_weight_act_per_tensor_scale",
});

// The part of a tensor's name among `known`, with a module in front; empty: none.
std::string_view find_part(std::string_view name, std::span<const std::string_view> known) {
  for (const std::string_view part : known) {
    if (name.size() > part.size() + 1 && name.ends_with(part) &&
        name[name.size() - part.size() - 1] == '.') {
      return part;
    }
  }
  return {};
}

std::map<std::string, ModuleParts> divide_by_module(Checkpoint& source, bool is_hqq) {
  std::map<std::string, ModuleParts> modules;
  const auto add_part = [&](const CheckpointEntry& entry, std::string_view end,
                            std::string_view part) {
    const std::string module = entry.name.substr(0, entry.name.size() - end.size() - 1);
    modules.try_emplace(module, source, module).first->second.add(part, entry);
  };
  for (const CheckpointEntry& entry : source.entries()) {
    std::string_view part = find_part(entry.name, kParts);
    if (part.empty() && is_hqq) part = find_part(entry.name, kHqqParts);
    if (!part.empty()) add_part(entry, part, part);
    for (const auto& [theirs, ours] : kTorchaoParts) {
      if (!find_part(entry.name, std::array{theirs}).empty()) add_part(entry, theirs, ours);
    }
  }
  return modules;
}

}  // namespace

QuantisedCheckpoint::QuantisedCheckpoint(Checkpoint& source, const PublishedQuantisation& settings,
                                         Memory& memory, ThreadPool& threads)
    : UnpackingCheckpoint(source, memory, threads),
      method_(settings.method),
      dtype_(settings.dtype) {
  for (const auto& [module, parts] : divide_by_module(source, settings.method == "hqq")) {
    if (auto matrix = find_quantised_matrix(parts, settings)) {
      add_matrix(parts, std::move(*matrix));
    }
  }
  std::set<std::string_view> hidden;
  for (const auto& [name, matrix] : matrices_) {
    hidden.insert(matrix.parts.begin(), matrix.parts.end());
  }
  const bool is_mlx = settings.method == "mlx";
  for (const CheckpointEntry& entry : source.entries()) {
    const bool is_unused = !is_mlx && !find_part(entry.name, kUnused).empty();
    if (!is_unused && !hidden.contains(entry.name)) entries_.push_back(entry);
  }
  std::ranges::sort(entries_, {}, &CheckpointEntry::name);
}

void QuantisedCheckpoint::add_matrix(const ModuleParts& parts, QuantisedMatrix matrix) {
  std::string name = parts.module() + ".weight";
  const uint64_t stored = parts.stored_bytes();
  uint64_t expanded = dtype_bytes(dtype_);
  for (const int64_t size : matrix.shape) expanded *= static_cast<uint64_t>(size);
  if (!matrix.packed && expanded > stored) added_bytes_ += expanded - stored;
  entries_.push_back({name, dtype_, matrix.shape});
  matrices_.emplace(std::move(name), Matrix{std::move(matrix), parts.names()});
}

const CheckpointEntry* QuantisedCheckpoint::find_entry(std::string_view name) const {
  const auto at = std::ranges::lower_bound(entries_, name, {}, &CheckpointEntry::name);
  return at == entries_.end() || at->name != name ? nullptr : &*at;
}

bool QuantisedCheckpoint::contains(std::string_view name) const {
  return find_entry(name) != nullptr;
}

std::optional<Extents> QuantisedCheckpoint::shape_of(std::string_view name) const {
  const CheckpointEntry* const entry = find_entry(name);
  return entry == nullptr ? std::nullopt : std::optional(entry->shape);
}

// Null for a name that isn't a quantised matrix.
const QuantisedCheckpoint::Matrix* QuantisedCheckpoint::find_matrix(std::string_view name,
                                                                    const Extents& shape) const {
  const auto at = matrices_.find(name);
  if (at == matrices_.end()) return nullptr;
  const Extents& found = at->second.matrix.shape;
  if (!(found == shape)) {
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: tensor {} has shape {}, but config.json needs {}", origin(),
                            quoted_name(name), to_string(found), to_string(shape)));
  }
  return &at->second;
}

Tensor QuantisedCheckpoint::read_tensor(std::string_view name, const Extents& shape, ReadAs as) {
  const Matrix* const matrix = find_matrix(name, shape);
  if (matrix == nullptr) return source_.read_tensor(name, shape, as);
  const Tensor* const known = find_copy(name);
  return (known != nullptr ? *known : keep_numbers(name, *matrix->matrix.open())).reshape(shape);
}

std::shared_ptr<const GroupedRows> QuantisedCheckpoint::read_grouped(std::string_view name,
                                                                     const Extents& shape) {
  const Matrix* const matrix = find_matrix(name, shape);
  if (matrix == nullptr) return source_.read_grouped(name, shape);
  return matrix->matrix.packed ? matrix->matrix.packed() : nullptr;
}

void QuantisedCheckpoint::release(std::string_view name) {
  const auto at = matrices_.find(name);
  if (at == matrices_.end()) return source_.release(name);
  drop_copy(name);
  for (const std::string& part : at->second.parts) source_.release(part);
}

bool QuantisedCheckpoint::has_packed() const {
  return std::ranges::any_of(
      matrices_, [](const auto& named) { return named.second.matrix.packed != nullptr; });
}

std::string QuantisedCheckpoint::description() const {
  std::map<std::string, int64_t> counts;
  for (const auto& [name, matrix] : matrices_) {
    const QuantisedMatrix& of = matrix.matrix;
    const std::string fate = of.packed ? std::string(of.numbers ? "kept" : "packed")
                                       : fmt::format("expanded to {}", dtype_name(dtype_));
    ++counts[fmt::format("{} ({})", fate, of.format)];
  }
  std::string text = method_ + ": ";
  if (counts.empty()) return text + "no quantised matrix";
  bool is_first = true;
  for (const auto& [fate, count] : counts) {
    text += fmt::format("{}{} {} {}", is_first ? "" : ", ", count,
                        count == 1 ? "matrix" : "matrices", fate);
    is_first = false;
  }
  return text;
}

}  // namespace paceline
