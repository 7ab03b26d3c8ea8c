// LoadContext has everything that a layer needs to load its weights, from a checkpoint or a
// prepared file.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend.h"
#include "layers/stored_rows.h"
#include "prepared/prepared_file.h"
#include "prepared/prepared_writer.h"
#include "weights/weight_reader.h"

namespace paceline {

struct LoadContext {
  WeightReader& weights;
  Backend& backend;    // packs the weights, in its memory
  DType weight_dtype;  // of packed plain matrices
  // The type of inputs of products with quantised matrices; without one, quantised matrices are
  // dequantised when they are read.
  std::optional<ActivationType> activations;
  // Whether plain matrices are quantised, where that is asked for.
  bool quantizes = true;
  // When not null, weights come packed from here, and the checkpoint isn't read.
  const PreparedFile* prepared = nullptr;
  // When not null, every weight is written there as soon as it is packed, and matrices keep no
  // memory: what is loaded can't compute.
  PreparedWriter* written = nullptr;
};

// The prepared matrix of this name with `k` inputs; nothing without a prepared file.
std::optional<PackedMatrix> prepared_matrix(const LoadContext& context, std::string_view name,
                                            int64_t k);

// One matrix [rows, columns] of the checkpoint, plain or quantised; releases the checkpoint's bytes
// at its end.
class StoredMatrix {
 public:
  // It is packed with all its rows in the order of `order`; without one, in that of the file.
  // Throws what WeightReader::read throws.
  StoredMatrix(const LoadContext& context, std::string name, int64_t rows, int64_t columns,
               std::vector<StoredRows> order = {});
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
  // One of them, in parts: the matrix in the order in which its rows are packed.
  std::vector<std::shared_ptr<const GroupedRows>> grouped_;
  std::vector<Tensor> plain_;
};

// Stacks the matrices, which must pack with each other.
PackedMatrix pack_stored(const LoadContext& context,
                         std::span<const std::unique_ptr<StoredMatrix>> parts);

// The prepared vector of this name with `size` elements; nothing without a prepared file.
std::optional<OwnedTensor> prepared_vector(const LoadContext& context, std::string_view name,
                                           int64_t size);
// A tensor of the checkpoint as float32, never quantised; the checkpoint's bytes are released.
std::vector<float> read_elements(const LoadContext& context, std::string_view name,
                                 const Extents& shape);
// The same of the vector `name` [size].
std::vector<float> read_vector(const LoadContext& context, std::string_view name, int64_t size);
// Stores a vector of weights in the backend's memory, under this name in prepared weights.
OwnedTensor store_vector(const LoadContext& context, std::string_view name,
                         std::span<const float> elements);

// Loads the vector `name` [size] and adds `offset` to every element (for norms 1 + w stored as w).
OwnedTensor load_vector(const LoadContext& context, std::string_view name, int64_t size,
                        float offset = 0.0f);
// The same in the CPU's memory, of a few numbers that are no operand.
std::vector<float> load_numbers(const LoadContext& context, std::string_view name, int64_t size);

// A number without a dimension, in the CPU's memory.
float load_number(const LoadContext& context, std::string_view name);

// Loads the matrix `name` [rows, columns], whose rows are looked up.
PackedMatrix load_table(const LoadContext& context, std::string_view name, int64_t rows,
                        int64_t columns);

}  // namespace paceline
