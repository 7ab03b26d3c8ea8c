#include "finetune/run_identity.h"

#include <fmt/format.h>

#include <string_view>
#include <type_traits>

#include "base/json_writer.h"
#include "base/option_names.h"
#include "models/decoder.h"

namespace paceline {
namespace {

// As JSON.
template <class T>
void add_property(std::string_view name, const T& value, RunIdentity& identity) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    identity.members.emplace_back(name, json_quote(value));
  } else {
    identity.members.emplace_back(name, fmt::format("{}", value));
  }
}

std::string pattern_text(const NamedNumbers& pattern) {
  std::string text;
  for (const auto& [key, number] : pattern) text += fmt::format("{}={} ", key, number);
  return text;
}

void add_target_identity(const TrainOptions& options, RunIdentity& identity) {
  const auto add = [&](const char* name, const auto& value) {
    add_property(name, value, identity);
  };
  if (options.fine_tune_type == FineTuneType::full) {
    add("fine_tune_type", option_name(options.fine_tune_type));
    add("from_scratch", options.from_scratch);
    return;
  }
  add("rank", options.rank);
  add("alpha", options.alpha);
  if (options.scale) add("scale", *options.scale);
  if (!options.rank_pattern.empty()) add("rank_pattern", pattern_text(options.rank_pattern));
  if (!options.alpha_pattern.empty()) add("alpha_pattern", pattern_text(options.alpha_pattern));
  add("dropout", options.dropout);
  add("use_rslora", options.use_rslora);
  add("num_layers", options.num_layers);
  add("target_modules", fmt::format("{}", fmt::join(options.target_modules, ",")));
  add("lora_dtype", option_name(options.lora_dtype));
}

// AdamW with its defaults has no members but the weight decay.
void add_optimizer_identity(const TrainOptions& options, RunIdentity& identity) {
  const auto add = [&](const char* name, const auto& value) {
    add_property(name, value, identity);
  };
  const TrainOptions usual;
  if (options.beta1 != usual.beta1) add("adam_beta1", options.beta1);
  if (options.beta2 != usual.beta2) add("adam_beta2", options.beta2);
  if (options.epsilon != usual.epsilon) add("adam_epsilon", options.epsilon);
  if (options.optimizer == OptimizerKind::adamw) return;
  add("optimizer", option_name(options.optimizer));
  add("muon_momentum", options.muon_momentum);
  add("adamw_learning_rate", options.adamw_learning_rate.value_or(options.learning_rate));
  add("adamw_weight_decay", options.adamw_weight_decay);
}

// As --sequence-lengths writes them.
std::string lengths_text(const std::vector<LengthStage>& stages) {
  std::string text;
  for (const LengthStage& stage : stages) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", stage.length, stage.until);
  }
  return text;
}

std::string hex(Hash128 hash) { return fmt::format("{:016x}{:016x}", hash.high, hash.low); }

}  // namespace

RunIdentity identity_of(const TrainOptions& options, const LoadedModel& model,
                        const TrainingData& data) {
  RunIdentity identity;
  const auto add = [&](const char* name, const auto& value) {
    add_property(name, value, identity);
  };
  add("num_parameters", model.decoder->num_parameters());
  add("num_examples", data.report.num_examples);
  add("num_tokens", data.report.num_tokens);
  add("num_counted", data.report.num_counted);
  add("num_validation", data.validation.size());
  add("max_seq_length", options.max_seq_length);
  add("packing", options.packing);
  add("batch", options.batch_size * options.accumulation_steps);
  if (!options.sequence_lengths.empty()) {
    add("sequence_lengths", lengths_text(options.sequence_lengths));
  }
  if (!options.first_token.empty()) add("first_token", options.first_token);
  add_target_identity(options, identity);
  add_optimizer_identity(options, identity);
  add("learning_rate", options.learning_rate);
  add("schedule", option_name(options.schedule));
  add("warmup_steps", options.warmup_steps);
  if (options.warmup_init) add("warmup_init", *options.warmup_init);
  if (options.hold_steps != 0) add("hold_steps", options.hold_steps);
  if (options.decay_steps != 0) add("decay_steps", options.decay_steps);
  if (options.final_learning_rate != 0) add("final_learning_rate", options.final_learning_rate);
  // A constant rate and sequences of one length don't depend on where the run ends.
  if (options.schedule != RateSchedule::constant || !options.sequence_lengths.empty()) {
    add("iters", options.num_steps);
  }
  if (options.schedule == RateSchedule::wsd) add("decay_fraction", options.decay_fraction);
  add("weight_decay", options.weight_decay);
  add("max_grad_norm", options.max_gradient_norm);
  add("seed", options.seed);
  // The weights, and the types of what a pass computes with.
  add("dtype", dtype_name(model.weight_dtype));
  add("kv_cache_dtype", dtype_name(model.kv_dtype));
  add("quantize", option_name(options.model.quantize));
  add("activations", option_name(options.model.activations));
  if (model.weights_digest) add("weights", hex(*model.weights_digest));
  // Last, because options change it, too.
  add("data", hex(digest_of(data)));
  return identity;
}

}  // namespace paceline
