// ModelResult is the result of full fine-tuning: a complete model directory.
#pragma once

#include <functional>
#include <string>

#include "train/weight_set.h"
#include "trainer/result_files.h"

namespace paceline {

class ModelResult final : public ResultFiles {
 public:
  // The files of a model but for its weights.
  struct Base {
    // The file's name of a canonical one ("norm.weight").
    std::function<std::string(const std::string& canonical)> weight_name;
    std::function<void(const std::filesystem::path& directory)> write_files;
  };

  // `weights` and `memory` must outlive it.
  ModelResult(const WeightSet& weights, Base base, Memory& memory)
      : weights_(weights), base_(std::move(base)), memory_(memory) {}

  // model.safetensors has the values as they are served: rounded to the type of the weights.
  void write(const std::filesystem::path& directory) const override;

 private:
  const WeightSet& weights_;
  Base base_;
  Memory& memory_;
};

}  // namespace paceline
