#include "finetune/training_target.h"

#include <utility>

#include "adapters/adapter_files.h"
#include "base/error.h"
#include "base/option_names.h"
#include "finetune/lora_shapes.h"
#include "load/chosen_types.h"
#include "load/model_adapter_base.h"
#include "load/model_source.h"
#include "load/trained_model_files.h"
#include "models/decoder.h"
#include "train/lora_set.h"
#include "train/weight_set.h"
#include "trainer/adapter_result.h"
#include "trainer/model_result.h"

namespace paceline {
namespace {

bool is_full(const TrainOptions& options) { return options.fine_tune_type == FineTuneType::full; }

LoraOptions lora_options(const TrainOptions& options, const LoadedModel& model,
                         const ModulePrefixes& prefixes) {
  const auto shape_of =
      [shapes = lora_shapes(options, model.decoder->config(), prefixes)](std::string_view module) {
        const auto found = shapes.find(module);
        return found == shapes.end() ? std::nullopt : std::optional(found->second);
      };
  const DType usual = model.weight_dtype == DType::f32 ? DType::f32 : DType::bf16;
  const DType dtype = choose_dtype(options.lora_dtype, usual);  // checked
  return {
      .shape_of = shape_of, .use_rslora = options.use_rslora, .dtype = dtype, .seed = options.seed};
}

TrainingTarget lora_target(const TrainOptions& options, LoadedModel& model) {
  const int64_t num_layers = model.decoder->config().num_stored_layers();
  if (options.num_layers > num_layers) {
    throw error_of(ErrorCode::invalid, "--num-layers: {}, but the model has {} layers",
                   options.num_layers, num_layers);
  }
  AdapterBase base = read_adapter_base(ModelSource(model.path));
  const LoraOptions loras_options = lora_options(options, model, base.peft_prefixes);
  auto loras = std::make_unique<LoraSet>(*model.backend, *model.decoder, loras_options);
  if (!options.initial_adapter.empty()) {
    loras->load(*model.backend, read_adapter(options.initial_adapter, base, model.memory));
  }
  TrainingTarget target{.num_modules = static_cast<int64_t>(loras->pairs().size()),
                        .dtype = loras_options.dtype};
  target.result =
      std::make_unique<AdapterResult>(*loras, std::move(base), model.path.string(), model.memory);
  target.trained = std::move(loras);
  return target;
}

TrainingTarget full_target(const TrainOptions& options, LoadedModel& model) {
  const auto files = std::make_shared<const TrainedModelFiles>(
      ModelSource(model.path), options.from_scratch ? LoadFormat::dummy : LoadFormat::files);
  auto weights = std::make_unique<WeightSet>(*model.backend, *model.decoder);
  if (options.from_scratch) weights->draw(*model.backend, options.seed);
  TrainingTarget target{.dtype = weights->dtype()};
  const TrainedModelFiles::Weights written{.dtype = weights->dtype(),
                                           .has_own_head = model.decoder->has_own_head()};
  target.result = std::make_unique<ModelResult>(
      *weights,
      ModelResult::Base{
          .weight_name = [files](const std::string& name) { return files->weight_name(name); },
          .write_files =
              [files, written](const std::filesystem::path& directory) {
                files->write(directory, written);
              }},
      model.memory);
  target.trained = std::move(weights);
  return target;
}

}  // namespace

TrainingTarget make_training_target(const TrainOptions& options, LoadedModel& model) {
  return is_full(options) ? full_target(options, model) : lora_target(options, model);
}

}  // namespace paceline
