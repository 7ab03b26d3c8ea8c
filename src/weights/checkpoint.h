// Checkpoint is a set of named weight tensors from any source.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "tensor/grouped_rows.h"
#include "tensor/tensor.h"

namespace paceline {

struct CheckpointEntry {
  std::string name;
  DType dtype = DType::f32;
  Extents shape;
  // What the file's metadata says of the tensor that this one is a part of: JSON of torchao's.
  std::string note = {};
};

// A matrix that a checkpoint quantises while it loads, as it is computed with or as it was before.
enum class ReadAs : uint8_t { loaded, stored };

// All virtual functions are pure, so that a checkpoint that stands on another one and doesn't
// forward a function doesn't compile.
class Checkpoint {
 public:
  virtual ~Checkpoint() = default;

  // The source of the weights, for messages.
  virtual std::string origin() const = 0;

  // The files that the tensors are read from; none for dummy weights.
  virtual std::span<const MappedFile> files() const = 0;

  // All tensors, sorted by name. Empty for dummy weights, which have every name.
  virtual const std::vector<CheckpointEntry>& entries() const = 0;

  // Whether read() can deliver the tensor. Dummy weights have every name except `lm_head.weight`
  // and biases: the config decides whether a model has those.
  virtual bool contains(std::string_view name) const = 0;

  // The stored shape; nothing for an unknown name and for dummy weights.
  virtual std::optional<Extents> shape_of(std::string_view name) const = 0;

  // A read-only view of the tensor, contiguous. Throws Error not_found naming the tensor, or
  // corrupt when its shape is not `shape`, naming both. Of any dtype: packed codes are
  // uint32. Valid until release(name) or the checkpoint's end.
  virtual Tensor read_tensor(std::string_view name, const Extents& shape, ReadAs as) = 0;
  Tensor read(std::string_view name, const Extents& shape) {
    return read_tensor(name, shape, ReadAs::loaded);
  }
  // The same, but never quantised while it loads.
  Tensor read_as_stored(std::string_view name, const Extents& shape) {
    return read_tensor(name, shape, ReadAs::stored);
  }

  // The quantised matrix [rows, row length], or null when it is stored as plain numbers; read()
  // delivers any matrix as numbers. Throws like read(). Valid as long as read()'s view.
  virtual std::shared_ptr<const GroupedRows> read_grouped(std::string_view name,
                                                          const Extents& shape) = 0;

  // Releases the tensor's bytes: mapped pages go back to the system.
  virtual void release(std::string_view name) = 0;
};

// Opens `model.safetensors`, `model.safetensors.index.json` with its shards, or all *.safetensors
// of the directory (in this order of preference). Throws Error not_found when there is none,
// unsupported when there are PyTorch files instead, and the errors of safetensors.h.
std::unique_ptr<Checkpoint> open_checkpoint(const std::filesystem::path& directory);

// A sentence about weights that open_checkpoint() leaves alone: shards with an index beside a
// model.safetensors, which may be of another model. Nothing where all are read.
std::optional<std::string> unread_weights(const std::filesystem::path& directory);

// Seeded dummy weights for any name and shape, for benchmarks and tests: normal with standard
// deviation 0.02 for matrices, ones for vectors; stored as `dtype`.
std::unique_ptr<Checkpoint> make_dummy_checkpoint(DType dtype, uint64_t seed, Memory& memory);

}  // namespace paceline
