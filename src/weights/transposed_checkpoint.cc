#include "weights/transposed_checkpoint.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace paceline {
namespace {

constexpr std::string_view kFirstMatrix = "h.0.attn.c_attn.weight";
constexpr auto kMatrices = std::to_array<std::string_view>(
    {".attn.c_attn.weight", ".attn.c_proj.weight", ".mlp.c_fc.weight", ".mlp.c_proj.weight"});

bool is_matrix(std::string_view name, const Extents& shape) {
  return shape.rank() == 2 &&
         std::ranges::any_of(kMatrices, [&](std::string_view end) { return name.ends_with(end); });
}

Extents transposed(const Extents& shape) { return {shape[1], shape[0]}; }

// The matrix of queries, keys and values has more outputs than inputs.
bool has_transposed_matrices(const Checkpoint& checkpoint) {
  for (const std::string_view prefix : {"", "transformer."}) {
    const auto shape = checkpoint.shape_of(std::string(prefix).append(kFirstMatrix));
    if (shape && shape->rank() == 2 && (*shape)[1] > (*shape)[0]) return true;
  }
  return false;
}

}  // namespace

TransposedCheckpoint::TransposedCheckpoint(std::unique_ptr<Checkpoint> source, Memory& memory)
    : ForwardingCheckpoint(*source),
      owned_(std::move(source)),
      memory_(memory),
      entries_(source_.entries()) {
  for (CheckpointEntry& entry : entries_) {
    if (is_matrix(entry.name, entry.shape)) entry.shape = transposed(entry.shape);
  }
}

std::optional<Extents> TransposedCheckpoint::shape_of(std::string_view name) const {
  const auto shape = source_.shape_of(name);
  return shape && is_matrix(name, *shape) ? transposed(*shape) : shape;
}

Tensor TransposedCheckpoint::read_tensor(std::string_view name, const Extents& shape, ReadAs as) {
  if (!is_matrix(name, shape)) return source_.read_tensor(name, shape, as);
  if (const auto at = copies_.find(name); at != copies_.end()) return at->second.view;
  const Tensor stored = source_.read_tensor(name, transposed(shape), as);
  OwnedTensor copy = allocate_tensor(memory_, stored.dtype(), shape);
  copy_elements(stored.transpose(0, 1), copy.view);
  source_.release(name);
  return copies_.insert_or_assign(std::string(name), std::move(copy)).first->second.view;
}

void TransposedCheckpoint::release(std::string_view name) {
  if (const auto at = copies_.find(name); at != copies_.end()) copies_.erase(at);
  source_.release(name);
}

std::unique_ptr<Checkpoint> with_usual_matrices(std::unique_ptr<Checkpoint> checkpoint,
                                                Memory& memory) {
  if (!has_transposed_matrices(*checkpoint)) return checkpoint;
  return std::make_unique<TransposedCheckpoint>(std::move(checkpoint), memory);
}

}  // namespace paceline
