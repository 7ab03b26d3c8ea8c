// QuantizingCheckpoint quantises the matrices of a plain checkpoint while they are read.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/thread_pool.h"
#include "paceline/options.h"
#include "weights/forwarding_checkpoint.h"

namespace paceline {

// q4 makes AffineRows, q8 SymmetricRows (around 128). Uses groups of 64, or of 32 where 64 doesn't
// divide a row; vectors, and matrices whose rows neither divides, stay plain. read() returns a
// matrix dequantised, rounded to its dtype. Not thread-safe.
class QuantizingCheckpoint : public ForwardingCheckpoint {
 public:
  // The arguments must outlive it.
  QuantizingCheckpoint(Checkpoint& source, LoadQuantization quantization, Memory& memory,
                       ThreadPool& threads)
      : ForwardingCheckpoint(source),
        quantization_(quantization),
        memory_(memory),
        threads_(threads) {}

  Tensor read_tensor(std::string_view name, const Extents& shape, ReadAs as) override;
  // Throws Error invalid when the source's matrix is quantised already, numerical when its numbers
  // aren't finite.
  std::shared_ptr<const GroupedRows> read_grouped(std::string_view name,
                                                  const Extents& shape) override;
  void release(std::string_view name) override;

 private:
  struct Matrix {
    std::shared_ptr<const GroupedRows> rows;
    std::optional<OwnedTensor> values;  // once read
  };

  std::shared_ptr<const GroupedRows> quantize(std::string_view name, const Extents& shape,
                                              int64_t group_size);

  LoadQuantization quantization_;
  Memory& memory_;
  ThreadPool& threads_;
  std::map<std::string, Matrix, std::less<>> matrices_;  // until released
};

}  // namespace paceline
