// A part is one weight in the form that kernels read: a packed matrix, or a float32 vector.
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

// The format of a part's bytes. A matrix is [n, k] and packed, plain or quantised; a vector is [n].
struct PartFormat {
  PartKind kind = PartKind::vector;
  DType dtype = DType::f32;          // of a plain part
  std::optional<Grouping> grouping;  // of a quantised part
  bool has_input_order = false;      // likewise
  int64_t n = 0;
  int64_t k = 1;

  bool operator==(const PartFormat&) const = default;
};

struct Part {
  std::string name;  // the canonical name of its first tensor
  PartFormat format;
  std::span<const std::byte> bytes;
};

// The bytes of such a part; nothing for an impossible format.
std::optional<uint64_t> part_bytes(const PartFormat& format);

Part matrix_part(std::string name, const PackedMatrix& matrix);
Part vector_part(std::string name, const Tensor& vector);

// The matrix of a matrix part, which reads the part's bytes in place: they must outlive it.
PackedMatrix lent_matrix(const Part& part, ActivationType activations);

// The parts of a model in the order they are made, and facts known once all weights were read.
struct PreparedWeights {
  std::vector<Part> parts;
  int64_t num_parameters = 0;
  bool is_quantised = false;  // some weights were quantised in the files
};

}  // namespace paceline
