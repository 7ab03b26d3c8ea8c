#include "adapters/pair_collector.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "weights/quoted_name.h"

namespace paceline {
namespace {

std::string in_tensor(std::string_view where, std::string_view tensor) {
  return fmt::format("{}: tensor {}", where, quoted_name(tensor));
}

// The shape of a pair's matrix as its file stores it.
Extents stored_shape(const StoredLoraMatrix& matrix, int64_t rows, int64_t columns) {
  return matrix.is_transposed ? Extents{columns, rows} : Extents{rows, columns};
}

template <class T>
bool all_finite(std::span<const T> values) {
  for (const T value : values) {
    if (!std::isfinite(to_float(value))) return false;
  }
  return true;
}

void separate_rows(std::span<std::byte> bytes, int64_t num_rows) {
  const std::vector<std::byte> stored(bytes.begin(), bytes.end());
  const size_t size = bytes.size() / static_cast<size_t>(num_rows);
  for (int64_t row = 0; row < num_rows; ++row) {
    std::memcpy(bytes.data() + static_cast<size_t>(separated_row(row, num_rows)) * size,
                stored.data() + static_cast<size_t>(row) * size, size);
  }
}

bool is_finite_matrix(const Tensor& matrix) {
  return with_float_dtype(matrix.dtype(), [&]<class T>() {
    return all_finite(
        std::span<const T>(matrix.elements<T>(), static_cast<size_t>(matrix.num_elements())));
  });
}

OwnedTensor copy_matrix(std::string_view where, const StoredLoraMatrix& matrix, Memory& memory) {
  const int64_t rows = matrix.shape[0];
  const int64_t columns = matrix.shape[1];
  OwnedTensor copy = allocate_tensor(
      memory, matrix.dtype, matrix.is_transposed ? Extents{columns, rows} : Extents{rows, columns});
  const std::span out(static_cast<std::byte*>(copy.view.raw()), copy.view.size_bytes());
  if (matrix.element_step > 1) {
    const size_t element = dtype_bytes(matrix.dtype);
    const size_t step = element * static_cast<size_t>(matrix.element_step);
    for (size_t i = 0; i < out.size() / element; ++i) {
      std::memcpy(out.data() + i * element, matrix.bytes.data() + i * step, element);
    }
  } else if (matrix.is_transposed) {
    transpose_bytes(matrix.bytes, rows, dtype_bytes(matrix.dtype), out);
  } else {
    std::memcpy(out.data(), matrix.bytes.data(), out.size());
  }
  if (matrix.alternates) separate_rows(out, copy.view.size(0));
  if (!is_finite_matrix(copy.view)) {
    throw Error(ErrorCode::numerical, fmt::format("{} holds a NaN or an infinity; the training "
                                                  "that made it has failed",
                                                  in_tensor(where, matrix.tensor)));
  }
  return copy;
}

}  // namespace

void transpose_bytes(std::span<const std::byte> bytes, int64_t rows, size_t element_bytes,
                     std::span<std::byte> out) {
  PL_CHECK(bytes.size() == out.size(), "a transposed matrix has the same size");
  const auto num_rows = static_cast<size_t>(rows);
  const size_t num_columns = bytes.size() / element_bytes / num_rows;
  for (size_t row = 0; row < num_rows; ++row) {
    for (size_t column = 0; column < num_columns; ++column) {
      std::memcpy(out.data() + (column * num_rows + row) * element_bytes,
                  bytes.data() + (row * num_columns + column) * element_bytes, element_bytes);
    }
  }
}

void PairCollector::fail(ErrorCode code, std::string_view tensor, std::string_view what) const {
  throw Error(code, fmt::format("{} {}", in_tensor(where_, tensor), what));
}

void PairCollector::add(std::string_view file_module, LoraSide side, StoredLoraMatrix matrix) {
  if (file_module == "embed_tokens" || file_module.ends_with(".embed_tokens")) {
    fail(ErrorCode::unsupported, matrix.tensor,
         "adapts the embedding, which isn't supported; train the adapter on projections only");
  }
  const auto module = find_module(base_, file_module);
  if (!module) {
    fail(ErrorCode::not_found, matrix.tensor,
         fmt::format("adapts {}, which the base model lacks or which can't be adapted{}",
                     quoted_name(file_module), suggest_module(base_, file_module)));
  }
  if (!is_float(matrix.dtype)) {
    fail(ErrorCode::corrupt, matrix.tensor,
         fmt::format("has dtype {}, expected float32, float16 or bfloat16",
                     dtype_name(matrix.dtype)));
  }
  if (matrix.shape.rank() != 2) {
    fail(ErrorCode::corrupt, matrix.tensor,
         fmt::format("has shape {}, expected two dimensions", to_string(matrix.shape)));
  }
  LoraParts& parts = parts_[*module];
  if (parts_.size() > limits_.max_pairs) {
    fail(ErrorCode::exhausted, matrix.tensor,
         fmt::format("belongs to more than {} pairs, the limit", limits_.max_pairs));
  }
  std::optional<StoredLoraMatrix>& place = side == LoraSide::a ? parts.a : parts.b;
  if (place) {
    fail(ErrorCode::corrupt, matrix.tensor,
         fmt::format("and {} both are {} of {}", quoted_name(place->tensor),
                     side == LoraSide::a ? "A" : "B", *module));
  }
  parts.file_module = std::string(file_module);
  place = std::move(matrix);
}

void PairCollector::check(const std::string& module, const LoraParts& parts) const {
  if (!parts.a || !parts.b) {
    const StoredLoraMatrix& found = parts.a ? *parts.a : *parts.b;
    fail(ErrorCode::corrupt, found.tensor,
         fmt::format("has no partner: the file lacks {} of {}", parts.a ? "B" : "A", module));
  }
  const StoredLoraMatrix& a = *parts.a;
  const StoredLoraMatrix& b = *parts.b;
  const int64_t rank = parts.rank();
  if (rank == 0) {
    fail(ErrorCode::corrupt, a.tensor,
         fmt::format("has shape {}: rank 0, expected 1 or more", to_string(a.shape)));
  }
  if (rank > limits_.max_rank) {
    fail(ErrorCode::exhausted, a.tensor,
         fmt::format("has shape {}: rank {}, at most {} is allowed", to_string(a.shape), rank,
                     limits_.max_rank));
  }
  for (const StoredLoraMatrix* matrix : {&a, &b}) {
    if (matrix->shape[0] != 0 && matrix->shape[1] != 0) continue;
    fail(ErrorCode::corrupt, matrix->tensor,
         fmt::format("has shape {}, which is empty", to_string(matrix->shape)));
  }
  const int64_t rank_of_b = b.shape[b.is_transposed ? 0 : 1];
  if (rank_of_b != rank) {
    fail(ErrorCode::corrupt, b.tensor,
         fmt::format("has shape {}: rank {}, but {} of shape {} has rank {}", to_string(b.shape),
                     rank_of_b, quoted_name(a.tensor), to_string(a.shape), rank));
  }
  if (!base_.is_known()) return;
  const MatrixSize size = *base_.size_of(module);
  const auto expect_shape = [&](const StoredLoraMatrix& matrix, const Extents& expected) {
    if (matrix.shape == expected) return;
    fail(ErrorCode::invalid, matrix.tensor,
         fmt::format("has shape {}, expected {} for {} [{}, {}] of the base model; was the adapter "
                     "trained on another model?",
                     to_string(matrix.shape), to_string(expected), module, size.out, size.in));
  };
  expect_shape(a, stored_shape(a, rank, size.in));
  expect_shape(b, stored_shape(b, size.out, rank));
}

PairCollector::Parts PairCollector::finish() {
  for (const auto& [module, parts] : parts_) check(module, parts);
  if (parts_.empty()) {
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: has no LoRA matrices for the text model", where_));
  }
  return std::move(parts_);
}

std::vector<StoredLoraMatrix> matrices_of_stack(const StoredLoraMatrix& stack) {
  const Extents& shape = stack.shape;
  const auto bytes = stack.bytes.size() / static_cast<size_t>(shape[0]);
  std::vector<StoredLoraMatrix> matrices;
  for (int64_t expert = 0; expert < shape[0]; ++expert) {
    StoredLoraMatrix& one = matrices.emplace_back(stack);
    one.shape = {shape[1], shape[2]};
    one.bytes = stack.bytes.subspan(static_cast<size_t>(expert) * bytes, bytes);
  }
  return matrices;
}

LoraPair read_pair(std::string_view where, std::string module, const LoraParts& parts,
                   Memory& memory) {
  LoraPair pair;
  pair.module = std::move(module);
  pair.a = copy_matrix(where, *parts.a, memory);
  pair.b = copy_matrix(where, *parts.b, memory);
  return pair;
}

}  // namespace paceline
