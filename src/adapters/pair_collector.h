// PairCollector finds the two matrices of each module among the tensors of an adapter's file, and
// checks them against each other and the base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/adapter.h"
#include "adapters/adapter_base.h"

namespace paceline {

struct AdapterLimits {
  int64_t max_rank = 1024;
  uint64_t max_bytes = uint64_t{16} << 30;  // of a file
  size_t max_pairs = 65'536;
};

// A matrix of a file. `bytes` may be unaligned.
struct StoredLoraMatrix {
  std::string tensor;  // its name in the file
  DType dtype = DType::f32;
  Extents shape;
  std::span<const std::byte> bytes;
  bool is_transposed = false;  // stored [in, rank] or [rank, out]
  int64_t element_step = 1;    // between elements, where it is a part of another matrix
  bool alternates = false;     // its rows are those of two matrices in turn
};

enum class LoraSide : uint8_t { a, b };

// Both matrices of a module.
struct LoraParts {
  std::string file_module;  // the module's name in the file, or a parameter's
  bool is_parameter = false;
  std::optional<StoredLoraMatrix> a;
  std::optional<StoredLoraMatrix> b;

  int64_t rank() const { return a->shape[a->is_transposed ? 1 : 0]; }
};

class PairCollector {
 public:
  using Parts = std::map<std::string, LoraParts, std::less<>>;  // by canonical module name

  // `where` is the file, for messages. The others must outlive it.
  PairCollector(std::string where, const AdapterBase& base, const AdapterLimits& limits)
      : where_(std::move(where)), base_(base), limits_(limits) {}

  // Throws Error naming the tensor: not_found when the base has no such module, corrupt when the
  // module has this matrix already or it isn't one of floats, exhausted for too many.
  void add(std::string_view file_module, LoraSide side, StoredLoraMatrix matrix);

  // All pairs. Throws Error corrupt when a matrix has no partner, ranks differ or are 0, or there
  // is no pair at all; invalid when a shape isn't the base's; exhausted for a rank beyond the
  // limit.
  Parts finish();

 private:
  void check(const std::string& module, const LoraParts& parts) const;
  [[noreturn]] void fail(ErrorCode code, std::string_view tensor, std::string_view what) const;

  std::string where_;
  const AdapterBase& base_;
  const AdapterLimits& limits_;
  Parts parts_;
};

// The matrices of a stack [experts, rank, in] or [experts, out, rank], which has experts.
std::vector<StoredLoraMatrix> matrices_of_stack(const StoredLoraMatrix& stack);

// Copies the matrices into accounted memory. Throws Error "WHERE: tensor ..." numerical when one
// holds a NaN or an infinity.
LoraPair read_pair(std::string_view where, std::string module, const LoraParts& parts,
                   Memory& memory);

// Row `row` of the matrix whose rows are those of two matrices in turn, in the one that has them
// one after the other.
constexpr int64_t separated_row(int64_t row, int64_t num_rows) {
  return row % 2 * (num_rows / 2) + row / 2;
}

// The bytes of a matrix [rows, columns] of this element size, transposed into `out`.
void transpose_bytes(std::span<const std::byte> bytes, int64_t rows, size_t element_bytes,
                     std::span<std::byte> out);

}  // namespace paceline
