#include "finetune/option_faults.h"

#include <fmt/format.h>

#include "base/number_range.h"
#include "base/option_names.h"

namespace paceline {
namespace {

using Fault = std::optional<std::string>;

constexpr double kMaxSteps = 1e9;

// The ranges of the program's flags.
Fault range_fault(const TrainOptions& options) {
  const auto value = [](const auto& number) { return static_cast<double>(number); };
  const struct {
    const char* flag;
    double found, min, max;
  } ranges[] = {{"--valid-fraction", options.validation_fraction.value_or(0), 0, 0.9},
                {"--max-seq-length", value(options.max_seq_length), 2, 1 << 20},
                {"--num-layers", value(options.num_layers), -1, 1 << 16},
                {"--lora-rank", value(options.rank), 1, 1024},
                {"--lora-alpha", options.alpha, 1e-6, 1e6},
                {"--lora-scale", options.scale.value_or(1), 1e-6, 1e6},
                {"--lora-dropout", options.dropout, 0, 0.99},
                {"--iters", value(options.num_steps), 1, kMaxSteps},
                {"--epochs", options.num_epochs.value_or(1), 1e-6, 1000},
                {"--batch-size", value(options.batch_size), 1, 1 << 16},
                {"--grad-accumulation-steps", value(options.accumulation_steps), 1, 1 << 16},
                {"--learning-rate", options.learning_rate, 0, 10},
                {"--decay-fraction", options.decay_fraction, 0, 1},
                {"--warmup-steps", value(options.warmup_steps), 0, kMaxSteps},
                {"--warmup-init", options.warmup_init.value_or(0), 0, 10},
                {"--hold-steps", value(options.hold_steps), 0, kMaxSteps},
                {"--decay-steps", value(options.decay_steps), 0, kMaxSteps},
                {"--final-learning-rate", options.final_learning_rate, 0, 10},
                {"--weight-decay", options.weight_decay, 0, 10},
                {"--muon-momentum", options.muon_momentum, 0, 0.9999},
                {"--adamw-learning-rate", options.adamw_learning_rate.value_or(0), 0, 10},
                {"--adamw-weight-decay", options.adamw_weight_decay, 0, 10},
                {"--adam-beta1", options.beta1, 0, 0.99999},
                {"--adam-beta2", options.beta2, 0, 0.99999},
                {"--adam-epsilon", options.epsilon, 1e-20, 1},
                {"--max-grad-norm", options.max_gradient_norm, 0, 1e9},
                {"--patience", value(options.patience), 0, 1 << 20},
                {"--steps-per-report", value(options.steps_per_report), 1, kMaxSteps},
                {"--steps-per-eval", value(options.steps_per_evaluation), 0, kMaxSteps},
                {"--val-batches", value(options.validation_batches), -1, kMaxSteps},
                {"--save-every", value(options.steps_per_checkpoint), 1, kMaxSteps}};
  for (const auto& range : ranges) {
    if (range.found >= range.min && range.found <= range.max) continue;  // never of a NaN
    return fmt::format("{}: found {}, expected {} to {}", range.flag, range.found, range.min,
                       range.max);
  }
  return std::nullopt;
}

Fault length_fault(const std::vector<LengthStage>& stages) {
  LengthStage last;
  for (const LengthStage& stage : stages) {
    const bool rises = stage.length > last.length && stage.until > last.until;
    if (!rises || !(stage.until <= 1)) {
      return fmt::format(
          "--sequence-lengths: found \"{}:{}\", expected rising lengths and parts of the run up to "
          "1, as 256:0.45,512:0.85",
          stage.length, stage.until);
    }
    last = stage;
  }
  return std::nullopt;
}

Fault target_fault(const TrainOptions& options) {
  if (options.fine_tune_type == FineTuneType::lora) {
    if (!is_lora_dtype(options.lora_dtype)) {
      return fmt::format("--lora-dtype: found {}, expected auto, float32 or bfloat16",
                         option_name(options.lora_dtype));
    }
    if (!options.from_scratch) return std::nullopt;
    return "--from-scratch trains all weights: give --fine-tune-type full, too";
  }
  const std::pair<const char*, bool> lora_only[] = {
      {"--target-modules", !options.target_modules.empty()},
      {"--num-layers", options.num_layers != -1},
      {"--lora-dropout", options.dropout != 0},
      {"--lora-scale", options.scale.has_value()},
      {"--rank-pattern", !options.rank_pattern.empty()},
      {"--alpha-pattern", !options.alpha_pattern.empty()},
      {"--use-rslora", options.use_rslora},
      {"--lora-dtype", options.lora_dtype != DataType::automatic},
      {"--initial-adapter", !options.initial_adapter.empty()}};
  for (const auto& [name, is_given] : lora_only) {
    if (!is_given) continue;
    return fmt::format("{} goes with LoRA: leave it out, or --fine-tune-type full", name);
  }
  return std::nullopt;
}

Fault optimizer_fault(const TrainOptions& options) {
  if (options.optimizer == OptimizerKind::muon) {
    if (options.learning_rate > 0 || !options.adamw_learning_rate) return std::nullopt;
    return "--learning-rate: found 0, expected more beside --adamw-learning-rate";
  }
  if (!options.adamw_learning_rate) return std::nullopt;
  return "--adamw-learning-rate goes with --optimizer muon";
}

}  // namespace

bool is_lora_dtype(DataType dtype) {
  return dtype == DataType::automatic || dtype == DataType::float32 || dtype == DataType::bfloat16;
}

std::optional<std::string> find_option_fault(const TrainOptions& options) {
  if (options.model.load_format == LoadFormat::dummy) {
    return "--load-format dummy would train beside random weights: leave it out, or give "
           "--from-scratch --fine-tune-type full to train a new model";
  }
  if (options.model.backend != "native") {
    return fmt::format("--backend: found {}, but native alone trains", options.model.backend);
  }
  if (options.data.empty()) return "nothing to learn: give --data PATH";
  for (const auto find : {target_fault, optimizer_fault, range_fault}) {
    if (auto fault = find(options)) return fault;
  }
  return length_fault(options.sequence_lengths);
}

}  // namespace paceline
