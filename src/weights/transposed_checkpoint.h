// TransposedCheckpoint shows matrices that files hold as [inputs, outputs] as [outputs, inputs].
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weights/forwarding_checkpoint.h"

namespace paceline {

class TransposedCheckpoint : public ForwardingCheckpoint {
 public:
  // `memory` must outlive it: copies of the matrices are kept there until they are released.
  TransposedCheckpoint(std::unique_ptr<Checkpoint> source, Memory& memory);

  const std::vector<CheckpointEntry>& entries() const override { return entries_; }
  std::optional<Extents> shape_of(std::string_view name) const override;
  Tensor read_tensor(std::string_view name, const Extents& shape, ReadAs as) override;
  void release(std::string_view name) override;

 private:
  std::unique_ptr<Checkpoint> owned_;
  Memory& memory_;
  std::vector<CheckpointEntry> entries_;
  std::map<std::string, OwnedTensor, std::less<>> copies_;
};

// A TransposedCheckpoint where the files hold their matrices so, as those of GPT-2 do
// (transformers' Conv1D); else the checkpoint itself.
std::unique_ptr<Checkpoint> with_usual_matrices(std::unique_ptr<Checkpoint> checkpoint,
                                                Memory& memory);

}  // namespace paceline
