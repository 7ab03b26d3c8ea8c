// LoadContext is what a layer loads its weights with, from a checkpoint or a prepared file.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend.h"
#include "prepared/prepared_file.h"
#include "weights/weight_reader.h"

namespace paceline {

struct LoadContext {
  WeightReader& weights;
  Backend& backend;    // packs the weights, in its memory
  DType weight_dtype;  // what plain matrices are packed as
  // The type of inputs of products with quantised matrices; without one, quantised matrices are
  // dequantised as they are read.
  std::optional<ActivationType> activations;
  // When not null, weights come from here, packed already, and the checkpoint isn't read.
  const PreparedFile* prepared = nullptr;
  // When not null, collects every weight that is packed.
  PreparedWeights* made = nullptr;
};

// The matrix of `k` inputs that was prepared under this name, or nothing when none are.
std::optional<PackedMatrix> prepared_matrix(const LoadContext& context, std::string_view name,
                                            int64_t k);

// One stored matrix [rows, columns], plain or quantised as the checkpoint has it; its bytes are
// released with it.
class StoredMatrix {
 public:
  // Throws what WeightReader::read throws.
  StoredMatrix(const LoadContext& context, std::string name, int64_t rows, int64_t columns);
  ~StoredMatrix();
  StoredMatrix(const StoredMatrix&) = delete;
  StoredMatrix& operator=(const StoredMatrix&) = delete;

  // Whether one PackedMatrix can hold both.
  bool packs_with(const StoredMatrix& other) const;

 private:
  friend PackedMatrix pack_stored(const LoadContext& context,
                                  std::span<const std::unique_ptr<StoredMatrix>> parts);

  WeightReader& weights_;
  std::string name_;
  std::shared_ptr<const GroupedRows> grouped_;
  Tensor plain_;  // without grouped_
};

// The matrices below one another; they must pack with each other.
PackedMatrix pack_stored(const LoadContext& context,
                         std::span<const std::unique_ptr<StoredMatrix>> parts);

// The `size` elements of a vector that was prepared under this name, or nothing when none are.
std::optional<OwnedTensor> prepared_vector(const LoadContext& context, std::string_view name,
                                           int64_t size);
// The vector `name` [size] of the checkpoint as float32; the checkpoint's bytes are released.
std::vector<float> read_vector(const LoadContext& context, std::string_view name, int64_t size);
// A vector of weights in the backend's memory, prepared under this name.
OwnedTensor store_vector(const LoadContext& context, std::string_view name,
                         std::span<const float> elements);

// The vector `name` [size], plus `offset` on every element (norms stored as w of 1 + w).
OwnedTensor load_vector(const LoadContext& context, std::string_view name, int64_t size,
                        float offset = 0.0f);

}  // namespace paceline
