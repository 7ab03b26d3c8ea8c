#include "load/model_source.h"

#include "base/json.h"
#include "load/gguf_model.h"
#include "load/model_path.h"
#include "models/family.h"
#include "tokenizer/made_tokenizer.h"
#include "weights/published_quantisation.h"
#include "weights/transposed_checkpoint.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const GgufFile> open_if_file(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return nullptr;
  return std::make_shared<const GgufFile>(path);
}

}  // namespace

ModelSource::ModelSource(const fs::path& path)
    : gguf_(open_if_file(path)),
      files_(gguf_ ? gguf_model_files(gguf_) : with_tokenizer_json(ModelFiles(path))) {}

void ModelSource::check_supported() const {
  constexpr std::string_view kConfig = "config.json";
  if (files_.contains(kConfig)) {
    const std::string where = files_.where(kConfig);
    check_model_kind(files_.read_json(kConfig), where);
  }
  PublishedQuantisation::find(files_);
}

std::unique_ptr<Checkpoint> ModelSource::open_weights(Memory& memory) const {
  check_supported();
  if (gguf_) return open_gguf_weights(gguf_, memory);
  return with_usual_matrices(open_checkpoint(path()), memory);
}

ModelSource open_model_source(const std::string& model) { return ModelSource(find_model(model)); }

}  // namespace paceline
