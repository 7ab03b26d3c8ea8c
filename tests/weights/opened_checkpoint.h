// A fixture for checkpoints that stand on another one: they are opened on a written file.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/thread_pool.h"
#include "tests/weights/written_files.h"
#include "weights/checkpoint.h"

namespace paceline {

template <class Opened>
class OpenedCheckpoint : public testing::Test {
 protected:
  // `own` are the arguments of Opened's constructor between the source and the memory.
  template <class... Own>
  Opened& open(const std::vector<FileTensor>& tensors, const Own&... own) {
    directory_.write("model.safetensors", safetensors_file(tensors));
    checkpoint_.reset();
    source_ = open_checkpoint(directory_.path());
    return checkpoint_.emplace(*source_, own..., memory_, threads_);
  }

  TestDirectory directory_;
  Memory memory_;
  ThreadPool threads_{2};
  std::unique_ptr<Checkpoint> source_;
  std::optional<Opened> checkpoint_;
};

}  // namespace paceline
