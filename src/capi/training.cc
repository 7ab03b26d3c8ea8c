// Training: the options of a run, its plan and its steps.
#include <cmath>
#include <limits>
#include <stop_token>

#include "base/option_names.h"
#include "capi/call_status.h"
#include "capi/handles.h"
#include "capi/load_options.h"
#include "paceline/training.h"

struct paceline_training {
  paceline::Training training;
};

namespace paceline::capi {
namespace {

constexpr double kNoLoss = std::numeric_limits<double>::quiet_NaN();

void set_text(const char* given, std::string& member) {
  if (given != nullptr) member = given;
}

void set_number(double given, std::optional<double>& member) {
  if (given != double{PACELINE_DEFAULT_FLOAT}) member = given;
}

template <class T>
std::span<const T> elements(const T* first, size_t count, const char* name) {
  if (count > 0) check_given(first, name);
  return {first, count};
}

NamedNumbers named_numbers(const paceline_module_number* first, size_t count, const char* name) {
  NamedNumbers numbers;
  for (const paceline_module_number& one : elements(first, count, name)) {
    check_given(one.key, name);
    numbers.emplace_back(one.key, one.number);
  }
  return numbers;
}

void set_data(const paceline_train_options& from, TrainOptions& to) {
  set_text(from.data, to.data);
  set_text(from.validation_data, to.validation_data);
  set_number(from.validation_fraction, to.validation_fraction);
  set_named(from.loss_tokens, "options.loss_tokens", to.loss_tokens);
  to.max_seq_length = from.max_seq_length;
  to.packing = from.packing != 0;
  for (const paceline_length_stage& stage :
       elements(from.sequence_lengths, from.num_sequence_lengths, "options.sequence_lengths")) {
    to.sequence_lengths.push_back({.length = stage.length, .until = stage.until});
  }
  set_text(from.first_token, to.first_token);
}

void set_target(const paceline_train_options& from, TrainOptions& to) {
  set_named(from.fine_tune_type, "options.fine_tune_type", to.fine_tune_type);
  to.from_scratch = from.from_scratch != 0;
  for (const char* const module :
       elements(from.target_modules, from.num_target_modules, "options.target_modules")) {
    check_given(module, "options.target_modules");
    to.target_modules.emplace_back(module);
  }
  to.num_layers = from.num_layers;
  to.rank = from.rank;
  to.alpha = from.alpha;
  set_number(from.scale, to.scale);
  to.rank_pattern =
      named_numbers(from.rank_pattern, from.num_rank_patterns, "options.rank_pattern");
  to.alpha_pattern =
      named_numbers(from.alpha_pattern, from.num_alpha_patterns, "options.alpha_pattern");
  to.dropout = from.dropout;
  to.use_rslora = from.use_rslora != 0;
  set_named(from.lora_dtype, "options.lora_dtype", to.lora_dtype);
  set_text(from.initial_adapter, to.initial_adapter);
}

void set_steps(const paceline_train_options& from, TrainOptions& to) {
  to.num_steps = from.num_steps;
  set_number(from.num_epochs, to.num_epochs);
  to.batch_size = from.batch_size;
  to.accumulation_steps = from.accumulation_steps;
  to.max_gradient_norm = from.max_gradient_norm;
  to.checkpoints = from.checkpoints != 0;
  to.patience = from.patience;
  to.steps_per_report = from.steps_per_report;
  to.steps_per_evaluation = from.steps_per_evaluation;
  to.validation_batches = from.validation_batches;
  to.steps_per_checkpoint = from.steps_per_checkpoint;
  to.seed = from.seed;
}

void set_optimizer(const paceline_train_options& from, TrainOptions& to) {
  to.learning_rate = from.learning_rate;
  set_named(from.schedule, "options.schedule", to.schedule);
  to.decay_fraction = from.decay_fraction;
  to.warmup_steps = from.warmup_steps;
  set_number(from.warmup_init, to.warmup_init);
  to.hold_steps = from.hold_steps;
  to.decay_steps = from.decay_steps;
  to.final_learning_rate = from.final_learning_rate;
  set_named(from.optimizer, "options.optimizer", to.optimizer);
  to.weight_decay = from.weight_decay;
  to.muon_momentum = from.muon_momentum;
  set_number(from.adamw_learning_rate, to.adamw_learning_rate);
  to.adamw_weight_decay = from.adamw_weight_decay;
  to.beta1 = from.beta1;
  to.beta2 = from.beta2;
  to.epsilon = from.epsilon;
}

TrainOptions train_options(const paceline_train_options* given) {
  check_given(given, "options");
  const auto options = complete(given, paceline_train_options_init, "options");
  check_given(options.model, "options.model");
  check_given(options.data, "options.data");
  TrainOptions result{.model = load_options(options.model), .resume = options.resume != 0};
  set_text(options.output, result.output);
  set_data(options, result);
  set_target(options, result);
  set_steps(options, result);
  set_optimizer(options, result);
  return result;
}

Training& training_of(paceline_training* training) {
  check_given(training, "training");
  return training->training;
}

paceline_training_point c_point(const TrainingPoint& point) {
  return {.step = point.step,
          .loss = point.loss.value_or(kNoLoss),
          .validation_loss = point.validation_loss.value_or(kNoLoss),
          .learning_rate = point.learning_rate,
          .gradient_norm = point.gradient_norm,
          .tokens_per_second = point.tokens_per_second,
          .num_tokens = point.num_tokens,
          .peak_bytes = point.peak_bytes};
}

}  // namespace
}  // namespace paceline::capi

using namespace paceline;
using namespace paceline::capi;

void paceline_train_options_init(paceline_train_options* options) {
  const TrainOptions usual;
  *options = {};
  options->size = sizeof(*options);
  options->validation_fraction = options->scale = options->num_epochs = options->warmup_init =
      options->adamw_learning_rate = double{PACELINE_DEFAULT_FLOAT};
  options->max_seq_length = usual.max_seq_length;
  options->packing = usual.packing ? 1 : 0;
  options->num_layers = usual.num_layers;
  options->rank = usual.rank;
  options->alpha = usual.alpha;
  options->dropout = usual.dropout;
  options->num_steps = usual.num_steps;
  options->batch_size = usual.batch_size;
  options->accumulation_steps = usual.accumulation_steps;
  options->learning_rate = usual.learning_rate;
  options->decay_fraction = usual.decay_fraction;
  options->weight_decay = usual.weight_decay;
  options->muon_momentum = usual.muon_momentum;
  options->adamw_weight_decay = usual.adamw_weight_decay;
  options->beta1 = usual.beta1;
  options->beta2 = usual.beta2;
  options->epsilon = usual.epsilon;
  options->max_gradient_norm = usual.max_gradient_norm;
  options->checkpoints = usual.checkpoints ? 1 : 0;
  options->steps_per_report = usual.steps_per_report;
  options->steps_per_evaluation = usual.steps_per_evaluation;
  options->validation_batches = usual.validation_batches;
  options->steps_per_checkpoint = usual.steps_per_checkpoint;
}

paceline_status paceline_open_training(const paceline_train_options* options,
                                       paceline_training** training) {
  return guarded([&] {
    begin_result(training, "training");
    *training = new paceline_training{Training::open(train_options(options))};
  });
}

void paceline_free_training(paceline_training* training) { delete training; }

paceline_status paceline_get_training_plan(paceline_training* training,
                                           const paceline_training_plan** plan) {
  return guarded([&] {
    begin_result(plan, "plan");
    const TrainingPlan& found = training_of(training).plan();
    auto result = std::make_unique<Owned<paceline_training_plan>>();
    ResultStore& store = result->store;
    static_cast<paceline_training_plan&>(*result) = {
        .data_file = store.keep(found.data_file),
        .data_format = store.keep(found.data_format),
        .num_examples = found.num_examples,
        .num_tokens = found.num_tokens,
        .num_counted_tokens = found.num_counted_tokens,
        .num_validation_examples = found.num_validation_examples,
        .num_steps = found.num_steps,
        .num_modules = found.num_modules,
        .num_parameters = found.num_parameters,
        .dtype = store.keep(std::string(option_name(found.dtype))),
        .notes = store.keep_texts(found.notes),
        .num_notes = found.notes.size()};
    *plan = result.release();
  });
}

void paceline_free_training_plan(const paceline_training_plan* plan) { free_owned(plan); }

paceline_status paceline_measure_step(paceline_training* training, paceline_step_cost* cost) {
  return guarded([&] {
    check_given(cost, "cost");
    *cost = {};
    const StepCost found = training_of(training).measure_step();
    *cost = {.loss = found.loss,
             .num_tokens = found.num_tokens,
             .seconds = found.seconds,
             .peak_bytes = found.peak_bytes};
  });
}

paceline_status paceline_run_training(paceline_training* training, paceline_on_point on_point,
                                      void* user, const paceline_cancellation* cancellation,
                                      paceline_training_outcome* outcome) {
  return guarded([&] {
    check_given(outcome, "outcome");
    *outcome = {};
    std::stop_source stop;
    const std::stop_token outside =
        cancellation != nullptr ? cancellation->source.get_token() : std::stop_token();
    const std::stop_callback passed_on(outside, [&stop] { stop.request_stop(); });
    const auto report = [&](const TrainingPoint& point) {
      if (on_point == nullptr) return;
      const paceline_training_point reported = c_point(point);
      if (on_point(&reported, user) != 0) stop.request_stop();
    };
    const TrainingOutcome found = training_of(training).run(report, stop.get_token());
    *outcome = {.end = static_cast<paceline_training_end>(found.end),
                .num_steps = found.num_steps,
                .saved_step = found.saved_step};
  });
}
