// FusePlan lists each tensor of a fused model: where its numbers come from and how they are
// written.
#pragma once

#include <vector>

#include "load/fuse_model.h"
#include "load/gguf_conversion.h"
#include "load/model_copy.h"
#include "weights/checkpoint.h"
#include "weights/weight_reader.h"

namespace paceline {

struct FuseStep {
  CheckpointEntry entry;           // of the base, as its model reads it
  const LoraPair* pair = nullptr;  // null: the adapter leaves the tensor as it is
  int64_t first_row = 0;           // of the pair's rows, where it changes other tensors too
  bool is_copied = false;          // the stored bytes, unchanged
  GgufForm form = GgufForm::same;  // of the base's numbers
};

struct FusePlan {
  std::vector<FuseStep> steps;
  std::vector<WrittenTensor> tensors;  // parallel to `steps`
  size_t num_shards = 1;
  FusedSizes sizes;
  // The type of formerly quantised matrices, if there are any and all are plain now.
  std::optional<DType> unpacked_dtype;
  bool has_new_head = false;  // the base's head is its embedding, the result's isn't

  // The format of most packed matrices, or FuseOptions::format; nothing when none is packed.
  std::optional<AffineFormat> usual_format;
};

// `base` has the weights as the model reads them. Throws the errors of fuse_model() about the
// model.
FusePlan make_fuse_plan(Checkpoint& base, const ModelSource& source, const Adapter& adapter,
                        const FuseOptions& options);

}  // namespace paceline
