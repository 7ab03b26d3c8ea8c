// TrainedModelFiles is what stands beside the weights of a model that was trained from another, and
// the names of its weights.
#pragma once

#include <filesystem>
#include <string>

#include "base/json.h"
#include "load/model_source.h"
#include "paceline/options.h"
#include "weights/weight_layout.h"

namespace paceline {

class TrainedModelFiles {
 public:
  // `format` is dummy where the source's weights, if it has any, aren't read. Throws Error
  // unsupported for a GGUF file and for a model with more than a text decoder; what reading throws.
  TrainedModelFiles(const ModelSource& source, LoadFormat format);

  // What the files call the weight of a canonical name ("layers.3.self_attn.q_proj.weight").
  std::string weight_name(const std::string& canonical) const;

  struct Weights {
    DType dtype = DType::bf16;
    bool has_own_head = false;
  };
  // config.json, which describes the weights, and copies of tokenizer, templates, generation
  // defaults and licences. Throws what NewFile throws.
  void write(const std::filesystem::path& directory, const Weights& weights) const;

 private:
  std::filesystem::path from_;
  Json config_;
  std::string prefix_;
  const WeightLayout* layout_ = nullptr;  // null: canonical names
  std::string head_name_;
  std::string embedding_name_;
};

}  // namespace paceline
