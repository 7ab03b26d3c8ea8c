#include "load/fuse_model.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <string_view>

#include "adapters/pair_delta.h"
#include "base/error.h"
#include "base/json_writer.h"
#include "base/new_directory.h"
#include "base/new_file.h"
#include "load/fuse_plan.h"
#include "load/gguf_conversion.h"
#include "load/weight_stack.h"
#include "weights/affine_quantizer.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConfigFile = "config.json";

// Writes the shards of a plan, tensor by tensor.
class FusedShards {
 public:
  FusedShards(const FusePlan& plan, const FuseOptions& options, Checkpoint& base,
              ThreadPool& threads)
      : plan_(plan), options_(options), base_(base), threads_(threads) {}

  void write_all(const fs::path& directory) {
    const std::string_view format = plan_.usual_format ? "mlx" : "pt";
    for (size_t shard = 0; shard < plan_.num_shards; ++shard) {
      SafetensorsWriter writer(directory / shard_name(shard, plan_.num_shards), format);
      for (const WrittenTensor& tensor : plan_.tensors) {
        if (tensor.shard == shard) tensor.add_to(writer);
      }
      for (size_t i = 0; i < plan_.tensors.size(); ++i) {
        if (plan_.tensors[i].shard != shard) continue;
        write(plan_.steps[i], plan_.tensors[i], writer);
        base_.release(plan_.steps[i].entry.name);
        memory_.clear_cache();
        done_ += plan_.tensors[i].bytes();
        options_.progress(done_, plan_.sizes.bytes_after);
      }
      writer.finish();
    }
  }

 private:
  void write(const FuseStep& step, const WrittenTensor& tensor, SafetensorsWriter& writer) {
    const CheckpointEntry& entry = step.entry;
    if (step.is_copied && !tensor.format) {
      return writer.write(tensor.name, base_.read(entry.name, entry.shape).bytes());
    }
    if (step.is_copied) {
      const auto parts = base_.read_grouped(entry.name, entry.shape)->stored_bytes();
      return write_packed(tensor, parts[0], parts[1], parts[2], writer);
    }
    const OwnedTensor numbers = fused(step);
    if (!tensor.format) {
      return writer.write(tensor.name, rounded(numbers, tensor.dtype, step).view.bytes());
    }
    const OwnedAffineRows rows(numbers.view, *tensor.format, where(step), memory_, threads_);
    const OwnedTensor scales = rounded(rows.tensors().scales, tensor.dtype, step);
    const OwnedTensor biases = rounded(rows.tensors().biases, tensor.dtype, step);
    write_packed(tensor, rows.tensors().words.bytes(), scales.view.bytes(), biases.view.bytes(),
                 writer);
  }

  static void write_packed(const WrittenTensor& tensor, std::span<const std::byte> words,
                           std::span<const std::byte> scales, std::span<const std::byte> biases,
                           SafetensorsWriter& writer) {
    writer.write(tensor.name, words);
    writer.write(tensor.module() + ".scales", scales);
    writer.write(tensor.module() + ".biases", biases);
  }

  std::string where(const FuseStep& step) const {
    return fmt::format("{}: tensor {}{}", base_.origin(), quoted_name(step.entry.name),
                       step.pair == nullptr ? "" : " with the adapter's pair");
  }

  // The step's numbers in float32, with the pair added.
  OwnedTensor fused(const FuseStep& step) {
    constexpr int64_t kRowsAtOnce = 16;
    const CheckpointEntry& entry = step.entry;
    const auto rows =
        entry.shape.rank() == 2 ? base_.read_grouped(entry.name, entry.shape) : nullptr;
    OwnedTensor numbers = allocate_tensor(memory_, DType::f32, entry.shape);
    if (rows == nullptr) copy_elements(base_.read(entry.name, entry.shape), numbers.view);
    undo_gguf_form(step.form, numbers.view);
    if (rows == nullptr && step.pair == nullptr) return numbers;
    std::optional<PairDelta> delta;
    if (step.pair != nullptr) delta.emplace(*step.pair);
    threads_.parallel_for(entry.shape[0], kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        const std::span<float> values(numbers.view.row<float>(row),
                                      static_cast<size_t>(entry.shape[1]));
        if (rows != nullptr) rows->read_values(row, values);
        if (delta) delta->add_to_row(step.first_row + row, values);
      }
    });
    return numbers;
  }

  OwnedTensor rounded(const OwnedTensor& numbers, DType dtype, const FuseStep& step) {
    return rounded(numbers.view, dtype, step);
  }

  // Contiguous float32 numbers in another type. Throws Error numerical when one isn't finite in it.
  OwnedTensor rounded(const Tensor& numbers, DType dtype, const FuseStep& step) {
    constexpr int64_t kElementsAtOnce = 1 << 16;
    OwnedTensor out = allocate_tensor(memory_, dtype, numbers.shape());
    const float* const from = numbers.elements<float>();
    std::atomic<int64_t> refused = -1;
    with_float_dtype(dtype, [&]<class T>() {
      T* const to = out.view.elements<T>();
      const auto round = [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          to[i] = from_float<T>(from[i]);
          if (!std::isfinite(to_float(to[i]))) refused = i;
        }
      };
      threads_.parallel_for(numbers.num_elements(), kElementsAtOnce, round);
    });
    if (refused < 0) return out;
    throw Error(ErrorCode::numerical,
                fmt::format("{}: found {}, expected finite numbers within {}{}", where(step),
                            from[refused], dtype_name(dtype),
                            std::isfinite(from[refused]) ? "; try --dtype bfloat16" : ""));
  }

  const FusePlan& plan_;
  const FuseOptions& options_;
  Checkpoint& base_;
  ThreadPool& threads_;
  Memory memory_;
  uint64_t done_ = 0;
};

// The field `quantization`: matrices that were fused and are plain are excluded by name.
Json quantization_of(const FusePlan& plan) {
  Json::Object field = quantization_field(plan.tensors, *plan.usual_format);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].pair == nullptr || plan.tensors[i].format) continue;
    field.emplace_back(plan.tensors[i].module(), false);
  }
  return Json(std::move(field));
}

Json fused_config(const Json& base, const FusePlan& plan, const FuseOptions& options) {
  constexpr std::string_view kTiedHead = "tie_word_embeddings";
  Json::Object fields;
  for (const auto& [key, value] : *base.object()) {
    if (key == "quantization" || key == "quantization_config") continue;
    if (key == kTiedHead && plan.has_new_head) continue;
    fields.emplace_back(key, value);
  }
  if (options.dtype) fields = with_dtype_name(fields, *options.dtype);
  if (plan.has_new_head) fields.emplace_back(kTiedHead, false);
  if (plan.usual_format) {
    const Json quantization = quantization_of(plan);
    fields.emplace_back("quantization", quantization);
    fields.emplace_back("quantization_config", quantization);
  }
  return Json(std::move(fields));
}

Json read_base_config(const ModelSource& source) {
  const std::string where = source.files().where(kConfigFile);
  Json config = source.files().read_json(kConfigFile);
  config.as_object(where);
  return config;
}

}  // namespace

FusedSizes fuse_model(const ModelSource& source, const Adapter& adapter, const FuseOptions& options,
                      ThreadPool& threads) {
  const Json config = read_base_config(source);
  const std::string where = source.files().where(kConfigFile);
  Memory memory;
  WeightStack weights(
      source.open_weights(memory),
      {.config = config, .where = where, .published = PublishedQuantisation::find(source.files())},
      memory, threads);
  const FusePlan plan = make_fuse_plan(weights.top(), source, adapter, options);
  NewDirectory directory(options.to);
  const fs::path& filling = directory.filling_path();
  FusedShards(plan, options, weights.top(), threads).write_all(filling);
  if (plan.num_shards > 1) write_shard_index(plan.tensors, plan.num_shards, filling);
  const Json base =
      source.gguf() == nullptr ? config : converted_config(*source.gguf(), plan.unpacked_dtype);
  write_new_file(filling / kConfigFile, to_json(fused_config(base, plan, options)) + "\n");
  if (source.gguf() == nullptr) {
    copy_model_files(source.path(), filling);
  } else {
    write_converted_files(source, filling);
  }
  directory.commit();
  return plan.sizes;
}

}  // namespace paceline
