#include "weights/expert_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/error.h"
#include "weights/grouped_row_range.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

constexpr int64_t kMostExperts = 4096;

// A stack's name ends with `suffix`; its rows are those of the projections, one after another.
struct StackName {
  std::string_view suffix;
  std::span<const std::string_view> projections;
};

constexpr std::array<std::string_view, 2> kGateUp = {"gate_proj", "up_proj"};
constexpr auto kGate = std::span(kGateUp).first(1), kUp = std::span(kGateUp).last(1);
constexpr std::array<std::string_view, 1> kDown = {"down_proj"};
constexpr std::array<std::string_view, 1> kNone = {""};
// Norms of each head of q or k, as GGUF files stack them.
constexpr std::string_view kHeadNorms = "_layernorm.norms.weight";

constexpr StackName kMatrixStacks[] = {
    // transformers 5
    {".experts.gate_up_proj", kGateUp},
    {".experts.up_proj", kUp},
    {".experts.down_proj", kDown},
    // transformers 4, granitemoe
    {".input_linear.weight", kGateUp},
    {".output_linear.weight", kDown},
    // mlx-lm
    {".switch_mlp.gate_proj.weight", kGate},
    {".switch_mlp.up_proj.weight", kUp},
    {".switch_mlp.down_proj.weight", kDown},
    {".experts.switch_glu.gate_proj.weight", kGate},
    {".experts.switch_glu.up_proj.weight", kUp},
    {".experts.switch_glu.down_proj.weight", kDown},
    // GGUF, as checkpoint_name() calls them; Mxfp4Checkpoint
    {".experts.gate_proj.weight", kGate},
    {".experts.up_proj.weight", kUp},
    {".experts.down_proj.weight", kDown},
    {".experts.gate_up_proj.weight", kGateUp},
};
constexpr StackName kBiasStacks[] = {
    {".experts.gate_up_proj_bias", kGateUp}, {".experts.down_proj_bias", kDown},
    {".experts.gate_proj.bias", kGate},      {".experts.up_proj.bias", kUp},
    {".experts.down_proj.bias", kDown},      {kHeadNorms, kNone},
};

const StackName* find_stack_name(const CheckpointEntry& entry) {
  const Extents& shape = entry.shape;
  if (shape.rank() != 2 && shape.rank() != 3) return nullptr;
  if (shape[0] > kMostExperts || std::ranges::find(shape, int64_t{0}) != shape.end())
    return nullptr;
  const std::span<const StackName> names =
      shape.rank() == 3 ? std::span<const StackName>(kMatrixStacks) : kBiasStacks;
  const auto found = std::ranges::find_if(
      names, [&](const StackName& stack) { return entry.name.ends_with(stack.suffix); });
  return found == names.end() ? nullptr : &*found;
}

std::string part_name(std::string_view block, const StackName& stack, int64_t index,
                      std::string_view projection, std::string_view kind) {
  if (stack.suffix == kHeadNorms) return fmt::format("{}_layernorm.norms.{}.weight", block, index);
  return fmt::format("{}.experts.{}.{}.{}", block, index, projection, kind);
}

}  // namespace

int64_t ExpertCheckpoint::Stack::rows_each() const {
  return layout == Layout::columns ? shape[2] : shape[1];
}

int64_t ExpertCheckpoint::Stack::row_length() const {
  if (layout == Layout::vectors) return 1;
  return layout == Layout::columns ? shape[1] : shape[2];
}

Extents ExpertCheckpoint::Part::shape() const {
  if (stack->layout == Layout::vectors) return {num_rows};
  return {num_rows, stack->row_length()};
}

Tensor ExpertCheckpoint::Part::view(const Tensor& stack_tensor) const {
  const int64_t rows = stack->rows_each(), length = stack->row_length();
  const int64_t begin = expert * rows * length;
  switch (stack->layout) {
    case Layout::rows:
      return stack_tensor.as_strided(shape(), {step * length, 1}, begin + first_row * length);
    case Layout::columns:
      return stack_tensor.as_strided(shape(), {step, rows}, begin + first_row);
    case Layout::vectors:
      break;
  }
  return stack_tensor.as_strided(shape(), {step}, begin + first_row);
}

ExpertCheckpoint::ExpertCheckpoint(Checkpoint& source, Memory& memory, ThreadPool& threads)
    : UnpackingCheckpoint(source, memory, threads) {
  for (const CheckpointEntry& entry : source.entries()) divide(entry);
  std::ranges::sort(entries_, {}, &CheckpointEntry::name);
}

void ExpertCheckpoint::divide(const CheckpointEntry& entry) {
  const StackName* const stack_name = find_stack_name(entry);
  if (stack_name == nullptr) {
    entries_.push_back(entry);
    return;
  }
  const auto projections = stack_name->projections;
  const int64_t count = std::ssize(projections);
  const std::string block = entry.name.substr(0, entry.name.size() - stack_name->suffix.size());
  const bool is_vector = entry.shape.rank() == 2;
  const bool has_biases = source_.contains(block + ".experts.down_proj_bias");
  const bool is_packed = entry.name.ends_with(".weight");
  // Llama 4's lie as columns, too: all of gate, then all of up.
  const bool is_beside_shared = block.ends_with(".feed_forward") && !is_packed &&
                                source_.contains(block + ".shared_expert.down_proj.weight");
  Stack& stack = *stacks_.emplace_back(std::make_unique<Stack>(
      Stack{.name = entry.name,
            .shape = entry.shape,
            .layout = is_vector                                        ? Layout::vectors
                      : (has_biases && !is_packed) || is_beside_shared ? Layout::columns
                                                                       : Layout::rows,
            .num_parts = entry.shape[0] * count}));
  if (stack.rows_each() % count != 0) {
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: tensor {} has shape {}, expected the rows of {} projections",
                            origin(), quoted_name(entry.name), to_string(entry.shape), count));
  }
  const int64_t rows = stack.rows_each() / count;
  for (int64_t expert = 0; expert < entry.shape[0]; ++expert) {
    for (int64_t i = 0; i < count; ++i) {
      std::string name = part_name(block, *stack_name, expert, projections[static_cast<size_t>(i)],
                                   is_vector ? "bias" : "weight");
      const Part part = {.stack = &stack,
                         .expert = expert,
                         .first_row = has_biases ? i : i * rows,
                         .step = has_biases ? count : 1,
                         .num_rows = rows};
      if (!parts_.emplace(name, part).second || source_.contains(name)) {
        throw Error(ErrorCode::corrupt,
                    fmt::format("{}: tensor {} and another one both hold {}", origin(),
                                quoted_name(entry.name), quoted_name(name)));
      }
      entries_.push_back({std::move(name), entry.dtype, part.shape()});
    }
  }
}

bool ExpertCheckpoint::contains(std::string_view name) const {
  return parts_.contains(name) || source_.contains(name);
}

std::optional<Extents> ExpertCheckpoint::shape_of(std::string_view name) const {
  const auto at = parts_.find(name);
  return at == parts_.end() ? source_.shape_of(name) : std::optional(at->second.shape());
}

ExpertCheckpoint::Part* ExpertCheckpoint::find_part(std::string_view name) {
  const auto at = parts_.find(name);
  return at == parts_.end() ? nullptr : &at->second;
}

std::shared_ptr<const GroupedRows> ExpertCheckpoint::read_grouped(std::string_view name,
                                                                  const Extents& shape) {
  Part* const part = find_part(name);
  if (part == nullptr) return source_.read_grouped(name, shape);
  check_shape(name, *part, shape);
  if (part->stack->layout != Layout::rows) return nullptr;
  auto rows = source_.read_grouped(part->stack->name, part->stack->shape);
  if (rows == nullptr) return nullptr;
  const int64_t first = part->expert * part->stack->rows_each() + part->first_row;
  return std::make_shared<GroupedRowRange>(std::move(rows), first, part->num_rows, part->step);
}

Tensor ExpertCheckpoint::read_tensor(std::string_view name, const Extents& shape, ReadAs as) {
  Part* const part = find_part(name);
  if (part == nullptr) return source_.read_tensor(name, shape, as);
  if (const Tensor* const known = find_copy(name)) return *known;
  if (const auto rows = read_grouped(name, shape)) return keep_numbers(name, *rows);
  const Tensor view = part->view(source_.read_tensor(part->stack->name, part->stack->shape, as));
  if (view.is_contiguous()) return view;
  OwnedTensor copy = allocate_tensor(memory_, view.dtype(), shape);
  copy_elements(view, copy.view);
  return keep_copy(name, std::move(copy));
}

void ExpertCheckpoint::check_shape(std::string_view name, const Part& part,
                                   const Extents& shape) const {
  if (part.shape() == shape) return;
  throw Error(
      ErrorCode::corrupt,
      fmt::format("{}: tensor {} {} has {} for each expert, but config.json needs {} for {}",
                  origin(), quoted_name(part.stack->name), to_string(part.stack->shape),
                  to_string(part.shape()), to_string(shape), quoted_name(name)));
}

void ExpertCheckpoint::release(std::string_view name) {
  Part* const part = find_part(name);
  if (part == nullptr) return source_.release(name);
  drop_copy(name);
  if (std::exchange(part->was_released, true)) return;
  if (++part->stack->num_released == part->stack->num_parts) source_.release(part->stack->name);
}

}  // namespace paceline
