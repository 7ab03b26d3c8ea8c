#include "cli/train_target.h"

#include <utility>

#include "adapters/adapter_files.h"
#include "base/error.h"
#include "cli/figures.h"
#include "cli/lora_shapes.h"
#include "cli/model_opening.h"
#include "cli/progress.h"
#include "cli/usage_error.h"
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

bool is_full(const TrainChoice& choice) { return choice.fine_tune_type == "full"; }

std::string parameters_text(const TrainedSet& trained) {
  return grouped_number(trained.num_parameters());
}

LoraOptions lora_options(const TrainChoice& choice, const LoadedModel& model,
                         const ModulePrefixes& prefixes) {
  const auto shape_of =
      [shapes = lora_shapes(choice, model.decoder->config(), prefixes)](std::string_view module) {
        const auto found = shapes.find(module);
        return found == shapes.end() ? std::nullopt : std::optional(found->second);
      };
  DType dtype = model.weight_dtype == DType::f32 ? DType::f32 : DType::bf16;
  if (choice.lora_dtype != "auto") dtype = *parse_dtype(choice.lora_dtype);
  return {
      .shape_of = shape_of, .use_rslora = choice.use_rslora, .dtype = dtype, .seed = choice.seed};
}

TrainTarget lora_target(const Settings& settings, LoadedModel& model) {
  const TrainChoice& choice = settings.train;
  const int64_t num_layers = model.decoder->config().num_stored_layers();
  if (choice.num_layers > num_layers) {
    throw error_of(ErrorCode::invalid, "--num-layers: {}, but the model has {} layers",
                   choice.num_layers, num_layers);
  }
  AdapterBase base = read_adapter_base(ModelSource(model_path(settings)));
  auto loras = std::make_unique<LoraSet>(*model.backend, *model.decoder,
                                         lora_options(choice, model, base.peft_prefixes));
  if (!choice.initial_adapter.empty()) {
    loras->load(*model.backend, read_adapter(choice.initial_adapter, base, model.memory));
  }
  TrainTarget target{.description = fmt::format("LoRA on {} modules, {} parameters",
                                                loras->pairs().size(), parameters_text(*loras))};
  target.result = std::make_unique<AdapterResult>(*loras, std::move(base),
                                                  model_path(settings).string(), model.memory);
  target.trained = std::move(loras);
  return target;
}

TrainTarget full_target(const Settings& settings, LoadedModel& model) {
  const TrainChoice& choice = settings.train;
  const auto files = std::make_shared<const TrainedModelFiles>(
      ModelSource(model_path(settings)),
      choice.from_scratch ? LoadFormat::dummy : LoadFormat::files);
  auto weights = std::make_unique<WeightSet>(*model.backend, *model.decoder);
  if (choice.from_scratch) weights->draw(*model.backend, choice.seed);
  TrainTarget target{.description = fmt::format(
                         "all {} parameters{}, in {}", parameters_text(*weights),
                         choice.from_scratch ? " from scratch" : "", dtype_name(weights->dtype()))};
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

std::string pattern_text(const NamedNumbers& pattern) {
  std::string text;
  for (const auto& [key, number] : pattern) text += fmt::format("{}={} ", key, number);
  return text;
}

}  // namespace

void check_target_options(const TrainChoice& choice) {
  if (!is_full(choice)) {
    if (!choice.from_scratch) return;
    throw UsageError("--from-scratch trains all weights: give --fine-tune-type full, too");
  }
  const std::pair<const char*, bool> lora_only[] = {
      {"--target-modules", !choice.target_modules.empty()},
      {"--num-layers", choice.num_layers != -1},
      {"--lora-dropout", choice.dropout != 0},
      {"--lora-scale", choice.scale.has_value()},
      {"--rank-pattern", !choice.rank_pattern.empty()},
      {"--alpha-pattern", !choice.alpha_pattern.empty()},
      {"--use-rslora", choice.use_rslora},
      {"--lora-dtype", choice.lora_dtype != "auto"},
      {"--initial-adapter", !choice.initial_adapter.empty()}};
  for (const auto& [name, is_given] : lora_only) {
    if (!is_given) continue;
    throw UsageError("{} goes with LoRA: leave it out, or --fine-tune-type full", name);
  }
}

TrainTarget make_train_target(const Settings& settings, LoadedModel& model) {
  return is_full(settings.train) ? full_target(settings, model) : lora_target(settings, model);
}

void add_target_identity(const TrainChoice& choice, RunIdentity& identity) {
  const auto add = [&](const char* name, const auto& value) {
    add_property(name, value, identity);
  };
  if (is_full(choice)) {
    add("fine_tune_type", choice.fine_tune_type);
    add("from_scratch", choice.from_scratch);
    return;
  }
  add("rank", choice.rank);
  add("alpha", choice.alpha);
  if (choice.scale) add("scale", *choice.scale);
  if (!choice.rank_pattern.empty()) add("rank_pattern", pattern_text(choice.rank_pattern));
  if (!choice.alpha_pattern.empty()) add("alpha_pattern", pattern_text(choice.alpha_pattern));
  add("dropout", choice.dropout);
  add("use_rslora", choice.use_rslora);
  add("num_layers", choice.num_layers);
  add("target_modules", fmt::format("{}", fmt::join(choice.target_modules, ",")));
  add("lora_dtype", choice.lora_dtype);
}

}  // namespace paceline
