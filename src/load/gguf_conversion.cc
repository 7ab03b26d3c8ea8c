#include "load/gguf_conversion.h"

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json_writer.h"
#include "base/new_directory.h"
#include "base/new_file.h"
#include "load/gguf_config.h"
#include "models/gguf_architecture.h"
#include "weights/expert_checkpoint.h"
#include "weights/safetensors_writer.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxTextBytes = size_t{1} << 30;

struct Step {
  CheckpointEntry entry;
  std::string name;          // as written
  DType dtype = DType::f32;  // as written
  GgufForm form = GgufForm::same;

  int64_t num_elements() const {
    int64_t product = 1;
    for (const int64_t size : entry.shape) product *= size;
    return product;
  }
};

std::vector<Step> plan_steps(const Checkpoint& weights, const GgufFile& file,
                             std::optional<DType> dtype) {
  std::vector<Step> steps;
  const GgufArchitecture& architecture = find_gguf_architecture(file.metadata());
  for (const CheckpointEntry& entry : weights.entries()) {
    steps.push_back({.entry = entry,
                     .name = transformers_name(architecture, entry.name),
                     .dtype = dtype.value_or(entry.dtype),
                     .form = gguf_form(architecture, entry.name)});
  }
  return steps;
}

// `tensor` in another type, with Hugging Face's numbers.
OwnedTensor converted(const Tensor& tensor, const Step& step, Memory& memory) {
  OwnedTensor numbers = allocate_tensor(memory, DType::f32, tensor.shape());
  copy_elements(tensor, numbers.view);
  undo_gguf_form(step.form, numbers.view);
  if (step.dtype == DType::f32) return numbers;
  OwnedTensor out = allocate_tensor(memory, step.dtype, tensor.shape());
  copy_elements(numbers.view, out.view);
  return out;
}

ConvertedSizes write_weights(const ModelSource& source, const GgufConversion& conversion,
                             const fs::path& path) {
  Memory memory;
  ThreadPool threads(1);
  const auto stored_weights = source.open_weights(memory);
  ExpertCheckpoint weights(*stored_weights, memory, threads);
  const auto steps = plan_steps(weights, *source.gguf(), conversion.dtype);
  SafetensorsWriter writer(path);
  for (const Step& step : steps) {
    writer.add(step.name, safetensors_dtype_name(step.dtype), step.entry.shape);
  }
  ConvertedSizes sizes{.bytes_after = writer.data_bytes()};
  uint64_t done = 0;
  for (const Step& step : steps) {
    const Tensor stored = weights.read(step.entry.name, step.entry.shape);
    if (step.dtype == stored.dtype() && step.form == GgufForm::same) {
      writer.write(step.name, stored.bytes());
    } else {
      writer.write(step.name, converted(stored, step, memory).view.bytes());
    }
    weights.release(step.entry.name);
    memory.clear_cache();
    ++sizes.num_tensors;
    sizes.parameters += step.num_elements();
    done += static_cast<uint64_t>(step.num_elements()) * dtype_bytes(step.dtype);
    conversion.progress(done, sizes.bytes_after);
  }
  writer.finish();
  for (const GgufTensorInfo& tensor : source.gguf()->tensors()) {
    sizes.bytes_before += tensor.bytes.size();
  }
  return sizes;
}

}  // namespace

Json converted_config(const GgufFile& file, std::optional<DType> dtype) {
  const Json made = gguf_config(file, NormWeights::as_in_hugging_face);
  Json::Object config = *made.object();
  for (auto& [key, value] : config) {
    if (key == "dtype" && dtype) value = Json(std::string(dtype_name(*dtype)));
  }
  return Json(std::move(config));
}

void write_converted_files(const ModelSource& source, const fs::path& directory) {
  for (const std::string_view name :
       {"generation_config.json", "tokenizer.json", "tokenizer_config.json"}) {
    if (!source.files().contains(name)) continue;
    write_new_file(directory / name, source.files().read(name, kMaxTextBytes) + "\n");
  }
}

GgufForm gguf_form(const GgufArchitecture& architecture, std::string_view name) {
  constexpr std::string_view kPlainNorm = ".linear_attn.norm.weight";
  if (name.ends_with(kGgufDecayRates)) return GgufForm::rate;
  const bool has_sums =
      architecture.norms_plus_one && name.ends_with("norm.weight") && !name.ends_with(kPlainNorm);
  return has_sums ? GgufForm::plus_one : GgufForm::same;
}

void undo_gguf_form(GgufForm form, const Tensor& numbers) {
  if (form == GgufForm::same) return;
  auto* const elements = numbers.elements<float>();
  for (int64_t i = 0; i < numbers.num_elements(); ++i) {
    if (form == GgufForm::plus_one) {
      elements[i] -= 1.0f;
    } else {
      elements[i] = static_cast<float>(std::log(-double{elements[i]}));
    }
  }
}

void apply_gguf_form(GgufForm form, const Tensor& numbers) {
  if (form == GgufForm::same) return;
  auto* const elements = numbers.elements<float>();
  for (int64_t i = 0; i < numbers.num_elements(); ++i) {
    if (form == GgufForm::plus_one) {
      elements[i] += 1.0f;
    } else {
      elements[i] = static_cast<float>(-std::exp(double{elements[i]}));
    }
  }
}

ConvertedSizes convert_gguf(const ModelSource& source, const GgufConversion& conversion) {
  if (source.gguf() == nullptr) {
    throw Error(
        ErrorCode::invalid,
        fmt::format("{}: a directory, expected a GGUF file; with --output FILE.gguf a directory "
                    "is written as one",
                    source.path().string()));
  }
  NewDirectory directory(conversion.to);
  const fs::path& filling = directory.filling_path();
  const Json config = converted_config(*source.gguf(), conversion.dtype);
  write_new_file(filling / "config.json", to_json(config) + "\n");
  write_converted_files(source, filling);
  const ConvertedSizes sizes = write_weights(source, conversion, filling / "model.safetensors");
  directory.commit();
  return sizes;
}

}  // namespace paceline
