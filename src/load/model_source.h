// ModelSource is the source of a model: a Hugging Face directory or a GGUF file.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/model_files.h"
#include "tensor/memory.h"
#include "weights/checkpoint.h"
#include "weights/gguf_file.h"

namespace paceline {

class ModelSource {
 public:
  // `path` is a directory with config.json, or a GGUF file, whose header is read. Throws Error like
  // GgufFile.
  explicit ModelSource(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return files_.origin(); }
  const ModelFiles& files() const { return files_; }
  // Null for a directory.
  const GgufFile* gguf() const { return gguf_.get(); }
  // Throws Error unsupported for a model that can't be computed, or whose weights can't be read,
  // according to its small files: its model_type or architecture, its method of quantisation.
  void check_supported() const;
  // `memory` must outlive the checkpoint. Throws the errors of check_supported(),
  // open_checkpoint() and open_gguf_weights().
  std::unique_ptr<Checkpoint> open_weights(Memory& memory) const;

 private:
  std::shared_ptr<const GgufFile> gguf_;
  ModelFiles files_;
};

// Opens the source of a model argument (find_model()).
ModelSource open_model_source(const std::string& model);

}  // namespace paceline
