// QuantisedCheckpoint presents matrices in published formats under their plain names.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "weights/forwarding_checkpoint.h"
#include "weights/published_quantisation.h"
#include "weights/quantised_matrix.h"

namespace paceline {

// For a module's tensors in a format of quantised_matrix.h (M.qweight, M.scales, ...) this has only
// M.weight. Scales of activations and of the cache are left out. Every other tensor passes through.
class QuantisedCheckpoint : public UnpackingCheckpoint {
 public:
  // The arguments but `settings` must outlive it. Throws Error corrupt naming the tensor when a
  // part is missing or doesn't fit the others, unsupported for a form that isn't read.
  QuantisedCheckpoint(Checkpoint& source, const PublishedQuantisation& settings, Memory& memory,
                      ThreadPool& threads);

  bool contains(std::string_view name) const override;
  std::optional<Extents> shape_of(std::string_view name) const override;
  // Dequantises to memory of its own.
  Tensor read_tensor(std::string_view name, const Extents& shape, ReadAs as) override;
  // Throws Error corrupt when a value makes no sense.
  std::shared_ptr<const GroupedRows> read_grouped(std::string_view name,
                                                  const Extents& shape) override;
  void release(std::string_view name) override;

  // What becomes of the matrices, for reports: "gptq: 14 matrices stay packed (4 bits in groups of
  // 128)".
  std::string description() const;
  bool has_packed() const;
  // By how many bytes the matrices that don't stay packed grow.
  uint64_t added_bytes() const { return added_bytes_; }

 private:
  struct Matrix {
    QuantisedMatrix matrix;
    std::vector<std::string> parts;  // the names of its tensors
  };

  const CheckpointEntry* find_entry(std::string_view name) const;
  const Matrix* find_matrix(std::string_view name, const Extents& shape) const;
  void add_matrix(const ModuleParts& parts, QuantisedMatrix matrix);

  std::map<std::string, Matrix, std::less<>> matrices_;  // by the name that is shown
  std::string method_;
  DType dtype_;
  uint64_t added_bytes_ = 0;
};

}  // namespace paceline
