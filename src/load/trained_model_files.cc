#include "load/trained_model_files.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_writer.h"
#include "base/new_file.h"
#include "load/load_decoder.h"
#include "load/model_copy.h"
#include "weights/weight_reader.h"

namespace paceline {
namespace {

constexpr std::string_view kTrainedHead = "lm_head.weight";
constexpr std::string_view kTrainedEmbedding = "embed_tokens.weight";
constexpr std::string_view kTiedHeadField = "tie_word_embeddings";

void check_text_model(const Checkpoint& weights) {
  for (const CheckpointEntry& entry : weights.entries()) {
    if (!is_outside_the_decoder(entry.name)) continue;
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: found {}, of a model that also sees: full fine-tuning takes text "
                            "models, LoRA takes both",
                            weights.origin(), entry.name));
  }
}

}  // namespace

TrainedModelFiles::TrainedModelFiles(const ModelSource& source, LoadFormat format)
    : from_(source.path()) {
  if (source.gguf() != nullptr) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: full fine-tuning takes a model directory, found a GGUF file: "
                            "paceline convert makes a directory of it",
                            source.path().string()));
  }
  const std::string where = source.files().where(kConfig);
  config_ = source.files().read_json(kConfig);
  config_.as_object(where);
  Memory memory;
  const auto weights = format == LoadFormat::files ? source.open_weights(memory)
                                                   : make_dummy_checkpoint(DType::f32, 0, memory);
  check_text_model(*weights);
  const WeightReader names(*weights);
  prefix_ = names.file_name("");
  layout_ = names.layout();
  embedding_name_ = names.file_name(kTrainedEmbedding);
  head_name_ = names.file_name(kTrainedHead);
}

std::string TrainedModelFiles::weight_name(const std::string& canonical) const {
  if (canonical == kTrainedEmbedding) return embedding_name_;
  if (canonical == kTrainedHead) return head_name_;
  return prefix_ + (layout_ != nullptr ? layout_->in_files(canonical) : canonical);
}

void TrainedModelFiles::write(const std::filesystem::path& directory,
                              const Weights& weights) const {
  Json::Object fields = with_dtype_name(*config_.object(), weights.dtype);
  if (weights.has_own_head) {
    std::erase_if(fields, [](const auto& field) { return field.first == kTiedHeadField; });
    fields.emplace_back(kTiedHeadField, false);
  }
  write_new_file(directory / kConfig, to_json(Json(std::move(fields))) + "\n");
  copy_model_files(from_, directory);
}

}  // namespace paceline
