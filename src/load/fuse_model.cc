#include "load/fuse_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <string_view>

#include "adapters/pair_delta.h"
#include "base/error.h"
#include "base/json_writer.h"
#include "base/new_directory.h"
#include "base/new_file.h"
#include "load/fuse_plan.h"
#include "load/gguf_conversion.h"
#include "load/weight_stack.h"
#include "load/write_gguf.h"
#include "weights/affine_quantizer.h"
#include "weights/forwarding_checkpoint.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConfigFile = "config.json";

// The numbers of a plan's steps.
class FusedNumbers {
 public:
  FusedNumbers(Checkpoint& base, Memory& memory, ThreadPool& threads)
      : base_(base), memory_(memory), threads_(threads) {}

  std::string where(const FuseStep& step) const {
    return fmt::format("{}: tensor {}{}", base_.origin(), quoted_name(step.entry.name),
                       step.pair == nullptr ? "" : " with the adapter's pair");
  }

  // The step's numbers in float32 and in `form`, with the pair added.
  OwnedTensor fused(const FuseStep& step, GgufForm form) {
    constexpr int64_t kRowsAtOnce = 16;
    const CheckpointEntry& entry = step.entry;
    const auto rows =
        entry.shape.rank() == 2 ? base_.read_grouped(entry.name, entry.shape) : nullptr;
    OwnedTensor numbers = allocate_tensor(memory_, DType::f32, entry.shape);
    if (rows == nullptr) copy_elements(base_.read(entry.name, entry.shape), numbers.view);
    undo_gguf_form(form, numbers.view);
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

 private:
  Checkpoint& base_;
  Memory& memory_;
  ThreadPool& threads_;
};

// The base's tensors, those with a pair fused.
class FusedCheckpoint final : public UnpackingCheckpoint {
 public:
  FusedCheckpoint(const FusePlan& plan, Checkpoint& base, Memory& memory, ThreadPool& threads)
      : UnpackingCheckpoint(base, memory, threads), numbers_(base, memory, threads) {
    entries_ = base.entries();
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      const FuseStep& step = plan.steps[i];
      if (step.pair == nullptr) continue;
      const bool is_new = !base.contains(plan.tensors[i].name);
      const std::string& name = is_new ? plan.tensors[i].name : step.entry.name;
      fused_.emplace(name, &step);
      if (is_new) entries_.push_back({name, step.entry.dtype, step.entry.shape});
      const auto is_it = [&](const CheckpointEntry& entry) { return entry.name == name; };
      std::ranges::find_if(entries_, is_it)->dtype = plan.tensors[i].dtype;
    }
    std::ranges::sort(entries_, {}, &CheckpointEntry::name);
  }

  bool contains(std::string_view name) const override {
    return fused_.contains(name) || source_.contains(name);
  }
  std::optional<Extents> shape_of(std::string_view name) const override {
    const auto at = fused_.find(name);
    return at == fused_.end() ? source_.shape_of(name) : at->second->entry.shape;
  }
  Tensor read_tensor(std::string_view name, const Extents& shape, ReadAs as) override {
    const auto at = fused_.find(name);
    if (at == fused_.end()) return source_.read_tensor(name, shape, as);
    if (const Tensor* const copy = find_copy(name)) return *copy;
    return keep_copy(name, numbers_.fused(*at->second, GgufForm::same));
  }
  std::shared_ptr<const GroupedRows> read_grouped(std::string_view name,
                                                  const Extents& shape) override {
    return fused_.contains(name) ? nullptr : source_.read_grouped(name, shape);
  }
  void release(std::string_view name) override {
    drop_copy(name);
    const auto at = fused_.find(name);
    source_.release(at == fused_.end() ? name : std::string_view(at->second->entry.name));
  }

 private:
  FusedNumbers numbers_;
  std::map<std::string, const FuseStep*, std::less<>> fused_;  // by name
};

// Writes the shards of a plan, tensor by tensor.
class FusedShards {
 public:
  FusedShards(const FusePlan& plan, const FuseOptions& options, Checkpoint& base,
              ThreadPool& threads)
      : plan_(plan),
        options_(options),
        base_(base),
        threads_(threads),
        numbers_(base, memory_, threads) {}

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
    const OwnedTensor numbers = numbers_.fused(step, step.form);
    if (!tensor.format) {
      return writer.write(tensor.name, rounded(numbers, tensor.dtype, step).view.bytes());
    }
    const OwnedAffineRows rows(numbers.view, *tensor.format, numbers_.where(step), memory_,
                               threads_);
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
                fmt::format("{}: found {}, expected finite numbers within {}{}",
                            numbers_.where(step), from[refused], dtype_name(dtype),
                            std::isfinite(from[refused]) ? "; try --dtype bfloat16" : ""));
  }

  const FusePlan& plan_;
  const FuseOptions& options_;
  Checkpoint& base_;
  ThreadPool& threads_;
  Memory memory_;
  FusedNumbers numbers_;
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

FusedSizes fuse_into_gguf(const ModelSource& source, const FusePlan& plan,
                          const FuseOptions& options, Checkpoint& base, ThreadPool& threads) {
  Memory memory;
  FusedCheckpoint fused(plan, base, memory, threads);
  const ConvertedSizes sizes = write_gguf(
      source, fused, {.to = options.to, .type = *options.gguf_type, .progress = options.progress},
      threads);
  return {.num_fused = plan.sizes.num_fused,
          .parameters = sizes.parameters,
          .quantized_parameters = sizes.quantized_parameters,
          .bytes_after = sizes.bytes_after};
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
  if (options.gguf_type) return fuse_into_gguf(source, plan, options, weights.top(), threads);
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
