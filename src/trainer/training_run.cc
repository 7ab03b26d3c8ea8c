#include "trainer/training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/new_directory.h"
#include "base/new_file.h"
#include "base/time_source.h"
#include "kernels/backend.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// What has happened since the last report.
struct Interval {
  double loss = 0;  // summed over tokens
  double gradient_norm = 0;
  double learning_rate = 0;
  double seconds = 0;
  int64_t num_tokens = 0;

  void add(const StepReport& report, double step_seconds) {
    loss += report.loss * static_cast<double>(report.num_tokens);
    gradient_norm = report.gradient_norm;
    learning_rate = report.learning_rate;
    num_tokens += report.num_tokens;
    seconds += step_seconds;
  }
};

}  // namespace

TrainingRun::TrainingRun(Trainer& trainer, const fs::path& directory, TrainingRunOptions options,
                         RunIdentity identity, const ResultFiles& result)
    : trainer_(trainer),
      directory_(directory),
      options_(options),
      identity_(std::move(identity)),
      result_(result),
      checkpoints_(directory) {}

int64_t TrainingRun::resume() {
  const auto step = checkpoints_.last_step();
  if (!step) return 0;
  checkpoints_.load(*step, trainer_, identity_);
  saved_step_ = *step;
  return *step;
}

void TrainingRun::save() {
  checkpoints_.save(trainer_, identity_, result_);
  saved_step_ = trainer_.num_steps();
}

// The result stands in the run's directory itself, once it is done.
void TrainingRun::finish() {
  const NewDirectory out(directory_ / "result");
  result_.write(out.filling_path());
  for (const auto& file : fs::directory_iterator(out.filling_path())) {
    rename_over(file.path(), directory_ / file.path().filename());
  }
}

TrainingOutcome TrainingRun::run(const RunData& data,
                                 const std::function<void(const TrainingPoint&)>& report,
                                 const std::stop_token& stop) {
  metrics_ = std::make_unique<MetricsFile>(directory_ / "metrics.jsonl", trainer_.num_steps());
  TrainingOutcome outcome;
  Interval interval;
  int64_t num_tokens = metrics_->points().empty() ? 0 : metrics_->points().back().num_tokens;
  double best = std::numeric_limits<double>::infinity();
  int64_t num_worse = 0;
  const auto evaluates_at = [&](int64_t step) {
    if (data.validation.empty()) return false;
    const int64_t every = options_.steps_per_evaluation;
    return step == options_.num_steps || (every > 0 && step % every == 0);
  };
  const auto note_validation = [&](double loss) {
    num_worse = loss < best ? 0 : num_worse + 1;
    best = std::min(best, loss);
  };
  for (const TrainingPoint& point : metrics_->points()) {
    if (point.validation_loss) note_validation(*point.validation_loss);
  }
  const auto is_patient = [&] { return options_.patience == 0 || num_worse < options_.patience; };
  const auto post = [&](TrainingPoint point) {
    point.peak_bytes = trainer_.backend().memory().stats().peak_bytes;
    point.num_tokens = num_tokens;
    metrics_->add(point);
    report(point);
  };
  try {
    if (trainer_.num_steps() == 0 && !data.validation.empty() && metrics_->points().empty()) {
      TrainingPoint before{.step = 0};
      before.validation_loss = trainer_.evaluate(data.validation);
      note_validation(*before.validation_loss);
      post(before);
    }
    while (trainer_.num_steps() < options_.num_steps && is_patient() && !stop.stop_requested()) {
      const auto begin = Clock::now();
      const std::vector<TrainBatch> batches = data.batches(trainer_.num_steps());
      const StepReport taken = trainer_.step(batches);
      interval.add(taken, seconds_since(begin));
      num_tokens += taken.num_tokens;
      const int64_t step = trainer_.num_steps();
      const bool evaluates = evaluates_at(step);
      if (evaluates || step % options_.steps_per_report == 0 || step == options_.num_steps) {
        TrainingPoint point{.step = step};
        point.loss = interval.loss / static_cast<double>(std::max<int64_t>(interval.num_tokens, 1));
        point.learning_rate = interval.learning_rate;
        point.gradient_norm = interval.gradient_norm;
        point.tokens_per_second = static_cast<double>(interval.num_tokens) / interval.seconds;
        interval = {};
        if (evaluates) {
          point.validation_loss = trainer_.evaluate(data.validation);
          note_validation(*point.validation_loss);
        }
        post(point);
      }
      if (step % options_.steps_per_checkpoint == 0) save();
    }
    save();
  } catch (const Error& error) {
    throw Error(error.code(), saved_step_ > 0
                                  ? fmt::format("{} (step {} is saved)", error.what(), saved_step_)
                                  : fmt::format("{} (nothing was saved yet)", error.what()));
  }
  outcome.num_steps = trainer_.num_steps();
  outcome.saved_step = saved_step_;
  if (trainer_.num_steps() >= options_.num_steps) {
    outcome.end = TrainingOutcome::End::finished;
  } else {
    outcome.end =
        is_patient() ? TrainingOutcome::End::stopped : TrainingOutcome::End::out_of_patience;
  }
  if (outcome.end != TrainingOutcome::End::stopped) finish();
  return outcome;
}

}  // namespace paceline
