#include "load/quantize_model.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/json_cursor.h"
#include "base/json_writer.h"
#include "base/mapped_file.h"
#include "base/model_files.h"
#include "base/new_directory.h"
#include "base/new_file.h"
#include "load/model_copy.h"
#include "load/quantize_plan.h"
#include "weights/affine_quantizer.h"
#include "weights/expert_checkpoint.h"
#include "weights/published_quantisation.h"
#include "weights/quantised_checkpoint.h"
#include "weights/quoted_name.h"
#include "weights/safetensors_writer.h"
#include "weights/transposed_checkpoint.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

// Writes the shards of a plan, tensor by tensor.
class ShardWriter {
 public:
  ShardWriter(const QuantizePlan& plan, const QuantizeOptions& options, Checkpoint& source,
              ThreadPool& threads)
      : plan_(plan), options_(options), source_(source), threads_(threads) {}

  void write_all(const fs::path& directory) {
    for (size_t shard = 0; shard < plan_.num_shards; ++shard) {
      SafetensorsWriter writer(directory / shard_name(shard, plan_.num_shards), "mlx");
      for (const WrittenTensor& tensor : plan_.tensors) {
        if (tensor.shard == shard) tensor.add_to(writer);
      }
      for (const WrittenTensor& tensor : plan_.tensors) {
        if (tensor.shard != shard) continue;
        done_ += write(tensor, writer);
        options_.progress(done_, plan_.sizes.bytes_before);
      }
      writer.finish();
    }
  }

 private:
  // The tensors of a stack.
  OwnedTensor gather(const WrittenTensor& tensor) {
    const Extents each(std::vector<int64_t>(tensor.shape.begin() + 1, tensor.shape.end()));
    OwnedTensor all = allocate_tensor(memory_, tensor.dtype, tensor.shape);
    for (size_t i = 0; i < tensor.experts.size(); ++i) {
      const auto index = static_cast<int64_t>(i);
      copy_elements(source_.read(tensor.experts[i], each),
                    all.view.slice(0, index, index + 1).reshape(each));
      source_.release(tensor.experts[i]);
    }
    return all;
  }

  static void write_packed(const WrittenTensor& tensor, const AffineTensors& rows,
                           SafetensorsWriter& writer) {
    writer.write(tensor.name, rows.words.bytes());
    writer.write(tensor.module() + ".scales", rows.scales.bytes());
    writer.write(tensor.module() + ".biases", rows.biases.bytes());
  }

  // Returns the bytes read.
  uint64_t write(const WrittenTensor& tensor, SafetensorsWriter& writer) {
    OwnedTensor stacked;
    if (!tensor.experts.empty()) stacked = gather(tensor);
    const Tensor plain =
        tensor.experts.empty() ? source_.read(tensor.name, tensor.shape) : stacked.view;
    const uint64_t bytes = plain.size_bytes();
    if (!tensor.format) {
      writer.write(tensor.name, plain.bytes());
    } else {
      const std::string where =
          fmt::format("{}: tensor {}", source_.origin(), quoted_name(tensor.name));
      const int64_t length = plain.size(-1);
      const Tensor matrix = plain.reshape({plain.num_elements() / length, length});
      const ErrorFeedback* const feedback =
          options_.calibration == nullptr ? nullptr
                                          : options_.calibration->feedback(tensor.name, length);
      if (feedback == nullptr) {
        const OwnedAffineRows rows(matrix, *tensor.format, where, memory_, threads_);
        write_packed(tensor, rows.tensors(), writer);
      } else {
        const CalibratedAffineRows rows(matrix, *feedback, *tensor.format, where, memory_,
                                        threads_);
        write_packed(tensor, rows.tensors(), writer);
      }
    }
    if (tensor.experts.empty()) source_.release(tensor.name);
    stacked = {};
    memory_.clear_cache();
    return bytes;
  }

  const QuantizePlan& plan_;
  const QuantizeOptions& options_;
  Checkpoint& source_;
  ThreadPool& threads_;
  Memory memory_;
  uint64_t done_ = 0;
};

// Writes the fields of the source's config, and each module's quantisation under both keys of
// mlx_lm.
void write_config(const Json& config, const QuantizePlan& plan, const fs::path& path) {
  Json::Object fields;
  for (const auto& [key, value] : *config.object()) {
    if (!key.starts_with("quantization")) fields.emplace_back(key, value);
  }
  const Json quantization(quantization_field(plan.tensors, plan.usual));
  fields.emplace_back("quantization", quantization);
  fields.emplace_back("quantization_config", quantization);
  write_new_file(path, to_json(Json(std::move(fields))) + "\n");
}

}  // namespace

QuantizedSizes quantize_model(const QuantizeOptions& options, ThreadPool& threads) {
  const fs::path config_path = options.from / "config.json";
  const Json config = ModelFiles(options.from).read_json("config.json");
  JsonCursor(config, config_path.string()).object();
  const auto published = PublishedQuantisation::find(ModelFiles(options.from));
  for (const std::string_view key : {"quantization", "quantization_config"}) {
    const bool is_tool = published && key == "quantization_config";
    if (is_tool || config.find_value(key) == nullptr) continue;
    throw Error(ErrorCode::invalid, fmt::format("{}: found {}: the model is quantised already",
                                                config_path.string(), key));
  }
  Memory memory;
  const auto stored = with_usual_matrices(open_checkpoint(options.from), memory);
  std::optional<QuantisedCheckpoint> expanded;
  if (published) expanded.emplace(*stored, *published, memory, threads);
  if (expanded && expanded->has_packed()) {
    throw Error(
        ErrorCode::invalid,
        fmt::format("{}: the model is quantised already, in integers that stay packed ({}); "
                    "use the original model, or one in FP8",
                    options.from.string(), expanded->description()));
  }
  ExpertCheckpoint source(expanded ? static_cast<Checkpoint&>(*expanded) : *stored, memory,
                          threads);
  const QuantizePlan plan = make_quantize_plan(source, options);
  NewDirectory directory(options.to);
  ShardWriter(plan, options, source, threads).write_all(directory.filling_path());
  if (plan.num_shards > 1) {
    write_shard_index(plan.tensors, plan.num_shards, directory.filling_path());
  }
  write_config(config, plan, directory.filling_path() / "config.json");
  copy_model_files(options.from, directory.filling_path());
  directory.commit();
  return plan.sizes;
}

}  // namespace paceline
