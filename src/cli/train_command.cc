#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "base/option_names.h"
#include "base/time_source.h"
#include "cli/command.h"
#include "cli/figures.h"
#include "cli/model_opening.h"
#include "cli/usage_error.h"
#include "finetune/option_faults.h"
#include "paceline/training.h"

namespace paceline {
namespace {

// Of what the command line says alone; open() refuses the rest.
TrainOptions train_options(const Settings& settings) {
  TrainOptions options = settings.train;
  options.model = settings.load;
  options.output = settings.output;
  if (const auto fault = find_option_fault(options)) throw UsageError("{}", *fault);
  if (options.output.empty() && !settings.dry_run) {
    throw UsageError("nowhere to write: give --output DIR");
  }
  options.model = load_options(settings);
  return options;
}

std::string duration_text(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  if (seconds < 5400) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

// Reports of a run: a line each.
class Reporter {
 public:
  Reporter(int64_t first_step, int64_t num_steps, Session& session)
      : first_step_(first_step), num_steps_(num_steps), session_(session) {}

  void operator()(const TrainingPoint& point) {
    if (!point.loss) begin_ = Clock::now();  // the evaluation before the first step
    std::string line = fmt::format("step {} of {}", point.step, num_steps_);
    if (point.loss) line += fmt::format(", loss {:.4f}", *point.loss);
    if (point.validation_loss) line += fmt::format(", validation {:.4f}", *point.validation_loss);
    if (point.loss) line += rate_text(point);
    session_.print_note(line);
  }

 private:
  std::string rate_text(const TrainingPoint& point) const {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    const double done = std::max(static_cast<double>(point.step - first_step_), 1.0);
    const double left = seconds / done * static_cast<double>(num_steps_ - point.step);
    return fmt::format(", {:.0f} tokens/s, {} left, at most {}", point.tokens_per_second,
                       duration_text(left), bytes_text(point.peak_bytes));
  }

  int64_t first_step_;
  int64_t num_steps_;
  Session& session_;
  Clock::time_point begin_ = Clock::now();
};

// "LoRA on 28 modules, 1,234,567 parameters".
std::string target_text(const TrainingPlan& plan, bool from_scratch) {
  const std::string parameters = grouped_number(plan.num_parameters);
  if (plan.num_modules > 0) {
    return fmt::format("LoRA on {} modules, {} parameters", plan.num_modules, parameters);
  }
  return fmt::format("all {} parameters{}, in {}", parameters, from_scratch ? " from scratch" : "",
                     option_name(plan.dtype));
}

void describe(const TrainingPlan& plan, const TrainOptions& options, Session& session) {
  session.print_note("{}: {} examples ({}), {} tokens, {} of them learnt; {} for evaluation",
                     plan.data_file, plan.num_examples, plan.data_format, plan.num_tokens,
                     plan.num_counted_tokens, plan.num_validation_examples);
  print_notes(plan.notes, session);
  if (options.num_epochs) {
    session.print_note("{} epochs: {} steps", *options.num_epochs, plan.num_steps);
  }
  session.print_note(target_text(plan, options.from_scratch));
}

// Options that the data or the length of the run leave without effect.
void warn_of_idle_options(const TrainOptions& options, const TrainingPlan& plan, Session& session) {
  const auto warn = [&](std::string_view text) { session.print_note("warning: {}", text); };
  const TrainOptions usual;
  if (options.warmup_steps >= plan.num_steps) {
    warn(fmt::format("--warmup-steps: the learning rate doesn't reach its peak in {} of {} steps",
                     plan.num_steps, options.warmup_steps));
  }
  if (plan.num_validation_examples > 0) return;
  constexpr std::string_view kWhy = "no effect without examples for evaluation (--valid-data)";
  if (options.patience != usual.patience) warn(fmt::format("--patience: {}", kWhy));
  if (options.validation_batches != usual.validation_batches) {
    warn(fmt::format("--val-batches: {}", kWhy));
  }
  if (options.steps_per_evaluation != usual.steps_per_evaluation) {
    warn(fmt::format("--steps-per-eval: {}", kWhy));
  }
}

Training open_training(TrainOptions options, const Settings& settings, Session& session) {
  std::optional<ByteProgress> progress(std::in_place, session);
  options.model.progress = progress->callback();
  Training training = Training::open(options);
  progress.reset();
  print_weight_notes(training.plan().weights_cache, settings, session);
  return training;
}

int dry_run(Training& training, Session& session) {
  const StepCost cost = training.measure_step();
  const int64_t num_steps = training.plan().num_steps;
  session.out().write(fmt::format(
      "one step: {} tokens learnt, {:.2f} s, loss {:.4f}\n{} steps: about {}, at most "
      "{} of memory\n",
      cost.num_tokens, cost.seconds, cost.loss, num_steps,
      duration_text(cost.seconds * static_cast<double>(num_steps)), bytes_text(cost.peak_bytes)));
  return 0;
}

std::string end_text(const TrainingOutcome& outcome, const std::string& directory) {
  switch (outcome.end) {
    case TrainingOutcome::End::finished:
      return fmt::format("{}: done after {} steps", directory, outcome.num_steps);
    case TrainingOutcome::End::out_of_patience:
      return fmt::format("{}: no lower validation loss, ended after {} steps", directory,
                         outcome.num_steps);
    case TrainingOutcome::End::stopped:
      break;
  }
  return fmt::format("{}: step {} is saved, --resume continues from it", directory,
                     outcome.saved_step);
}

}  // namespace

int run_train(const Settings& settings, Session& session) {
  const TrainOptions options = train_options(settings);
  Training training = open_training(options, settings, session);
  const TrainingPlan& plan = training.plan();
  describe(plan, options, session);
  warn_of_idle_options(options, plan, session);
  if (settings.dry_run) return dry_run(training, session);

  // From here on there is a directory to leave in order.
  const Interrupt::Graceful graceful(session.interrupt());
  const int64_t first_step = training.begin();
  if (first_step > 0) session.print_note("continuing after step {}", first_step);
  const TrainingOutcome outcome =
      training.run(Reporter(first_step, plan.num_steps, session), session.stop_token());
  session.explain_interruption(end_text(outcome, options.output));
  if (outcome.end != TrainingOutcome::End::stopped) {
    session.print_note(end_text(outcome, options.output));
  }
  return session.exit_code(0);
}

}  // namespace paceline
