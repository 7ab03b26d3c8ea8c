// A part is one weight in the form in which kernels read it: a packed matrix, or a float32 vector.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/packed_matrix.h"
#include "tensor/tensor.h"

namespace paceline {

enum class PartKind : uint8_t { matrix, vector };

// What the bytes of a part are. A matrix is [n, k] and packed, plain or quantised; a vector is [n].
struct PartFormat {
  PartKind kind = PartKind::vector;
  DType dtype = DType::f32;          // of what is plain
  std::optional<Grouping> grouping;  // of what is quantised
  int64_t n = 0;
  int64_t k = 1;

  bool operator==(const PartFormat&) const = default;
};

struct Part {
  std::string name;  // the canonical name of its first tensor
  PartFormat format;
  std::span<const std::byte> bytes;
};

// How many bytes such a part has; nothing when there can't be one.
std::optional<uint64_t> part_bytes(const PartFormat& format);

Part matrix_part(std::string name, const PackedMatrix& matrix);
Part vector_part(std::string name, const Tensor& vector);

// The matrix of a matrix part, which reads the part's bytes where they are: they must outlive it.
PackedMatrix lent_matrix(const Part& part, ActivationType activations);

// The parts of a model in the order in which they are made, and the facts about the model that are
// complete once all weights were read. The parts' bytes belong to the decoder.
struct PreparedWeights {
  std::vector<Part> parts;
  int64_t num_parameters = 0;
  bool is_quantised = false;  // some weights were quantised in the files
};

}  // namespace paceline
