// Mxfp4Checkpoint presents stacks of matrices in MXFP4 under their plain names.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "weights/forwarding_checkpoint.h"
#include "weights/mxfp4_rows.h"

namespace paceline {

// Whether config.json says that weights are in MXFP4, as gpt-oss is stored.
bool has_mxfp4(const Json& config, std::string_view where);

// For NAME_blocks [experts, rows, blocks, 16] and NAME_scales [experts, rows, blocks] of uint8 in
// the source, this has only NAME.weight [experts, rows, row length], which is read as one matrix of
// all rows. Every other tensor passes through.
class Mxfp4Checkpoint : public UnpackingCheckpoint {
 public:
  // The arguments must outlive it. Throws Error corrupt naming the tensor when scales are missing
  // or don't fit.
  Mxfp4Checkpoint(Checkpoint& source, Memory& memory, ThreadPool& threads);

  bool contains(std::string_view name) const override;
  std::optional<Extents> shape_of(std::string_view name) const override;
  // Dequantises to memory of its own.
  Tensor read_tensor(std::string_view name, const Extents& shape, ReadAs as) override;
  // Throws Error corrupt when a scale is NaN.
  std::shared_ptr<const GroupedRows> read_grouped(std::string_view name,
                                                  const Extents& shape) override;
  void release(std::string_view name) override;

 private:
  struct Stack {
    std::string blocks;  // the names of its tensors
    std::string scales;
    Extents blocks_shape;
  };

  void add_stack(const CheckpointEntry& blocks);
  const Stack* find_stack(std::string_view name) const;

  std::map<std::string, Stack, std::less<>> stacks_;  // by the name that is shown
};

}  // namespace paceline
