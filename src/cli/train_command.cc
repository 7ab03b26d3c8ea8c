#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/json_cursor.h"
#include "base/json_writer.h"
#include "base/mapped_file.h"
#include "base/new_file.h"
#include "base/option_names.h"
#include "base/time_source.h"
#include "cli/command.h"
#include "cli/figures.h"
#include "cli/model_opening.h"
#include "cli/train_data.h"
#include "cli/train_target.h"
#include "cli/usage_error.h"
#include "kernels/backend.h"
#include "models/decoder.h"
#include "trainer/run_directory.h"
#include "trainer/training_run.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRunFile = "run.json";

// Of a cache that nothing uses.
constexpr size_t kTrainingKvBytes = size_t{64} << 20;

// Only the weights are needed: the cache is as small as it can be.
LoadOptions train_load_options(const Settings& settings) {
  LoadOptions options = load_options(settings);
  if (options.device == "auto") options.device = "cpu";
  if (options.device != "cpu") {
    // Else it would take what weights leave of a GPU's memory.
    options.kv_cache_memory_bytes = kTrainingKvBytes;
  } else if (!options.cache_limit_bytes) {  // a GPU's memory is slow to give back
    options.cache_limit_bytes = kTrainingCacheBytes;
  }
  options.max_num_seqs = 1;
  options.max_model_len = 32;
  options.prefix_caching = false;
  if (settings.train.from_scratch) options.load_format = LoadFormat::dummy;
  options.fingerprint = options.load_format == LoadFormat::files;  // a resumed run has the same
  return options;
}

LearningRate learning_rate(const TrainChoice& choice) {
  using Schedule = LearningRate::Schedule;
  const Schedule schedule = choice.schedule == "cosine"   ? Schedule::cosine
                            : choice.schedule == "linear" ? Schedule::linear
                            : choice.schedule == "wsd"    ? Schedule::wsd
                                                          : Schedule::constant;
  return {.peak = choice.learning_rate,
          .schedule = schedule,
          .warmup_steps = choice.warmup_steps,
          .warmup_init = choice.warmup_init,
          .hold_steps = choice.hold_steps,
          .num_steps = choice.num_steps,
          .decay_steps = choice.decay_steps,
          .last = choice.final_learning_rate,
          .decay_fraction = choice.decay_fraction};
}

std::variant<AdamWOptions, MuonOptions> optimizer_options(const TrainChoice& choice,
                                                          const LoadedModel& model) {
  AdamWOptions adamw{.beta1 = choice.beta1,
                     .beta2 = choice.beta2,
                     .epsilon = choice.epsilon,
                     .weight_decay = choice.weight_decay};
  if (choice.optimizer == "adamw") return adamw;
  adamw.weight_decay = choice.adamw_weight_decay;
  MuonOptions muon{.momentum = choice.muon_momentum,
                   .weight_decay = choice.weight_decay,
                   .dtype = model.weight_dtype == DType::f32 ? DType::f32 : DType::bf16,
                   .adamw = adamw};
  if (choice.adamw_learning_rate) {
    muon.adamw_rate = *choice.adamw_learning_rate / choice.learning_rate;
  }
  return muon;
}

TrainerOptions trainer_options(const TrainChoice& choice, const LoadedModel& model) {
  return {.learning_rate = learning_rate(choice),
          .optimizer = optimizer_options(choice, model),
          .max_gradient_norm = choice.max_gradient_norm,
          .dropout = choice.dropout,
          .seed = choice.seed,
          .pass = {.kv_dtype = model.kv_dtype,
                   .kept_bytes = choice.checkpoints ? kKeptActivationBytes : kAllActivations}};
}

void check_train_options(const Settings& settings) {
  const TrainChoice& choice = settings.train;
  if (settings.load.load_format == LoadFormat::dummy) {
    throw UsageError(
        "--load-format dummy would train beside random weights: leave it out, or give "
        "--from-scratch --fine-tune-type full to train a new model");
  }
  if (choice.data.empty()) throw UsageError("nothing to learn: give --data PATH");
  if (settings.output.empty() && !choice.dry_run) {
    throw UsageError("nowhere to write: give --output DIR");
  }
  length_stages(choice);
  check_target_options(choice);
  if (choice.optimizer == "muon") {
    if (choice.learning_rate > 0 || !choice.adamw_learning_rate) return;
    throw UsageError("--learning-rate: found 0, expected more beside --adamw-learning-rate");
  }
  if (choice.adamw_learning_rate) {
    throw UsageError("--adamw-learning-rate goes with --optimizer muon");
  }
}

// AdamW with its defaults has no members but the weight decay.
void add_optimizer_identity(const TrainChoice& choice, RunIdentity& identity) {
  const auto add = [&](const char* name, const auto& value) {
    add_property(name, value, identity);
  };
  const TrainChoice usual;
  if (choice.beta1 != usual.beta1) add("adam_beta1", choice.beta1);
  if (choice.beta2 != usual.beta2) add("adam_beta2", choice.beta2);
  if (choice.epsilon != usual.epsilon) add("adam_epsilon", choice.epsilon);
  if (choice.optimizer == "adamw") return;
  add("optimizer", choice.optimizer);
  add("muon_momentum", choice.muon_momentum);
  add("adamw_learning_rate", choice.adamw_learning_rate.value_or(choice.learning_rate));
  add("adamw_weight_decay", choice.adamw_weight_decay);
}

std::string hex(Hash128 hash) { return fmt::format("{:016x}{:016x}", hash.high, hash.low); }

// What a resumed run must have in common with the one before.
RunIdentity identity_of(const Settings& settings, const LoadedModel& model, const TrainData& data) {
  const TrainChoice& choice = settings.train;
  RunIdentity identity;
  const auto add = [&](const char* name, const auto& value) {
    add_property(name, value, identity);
  };
  add("num_parameters", model.decoder->num_parameters());
  add("num_examples", data.report.num_examples);
  add("num_tokens", data.report.num_tokens);
  add("num_counted", data.report.num_counted);
  add("num_validation", data.validation.size());
  add("max_seq_length", choice.max_seq_length);
  add("packing", choice.is_packed);
  add("batch", choice.batch_size * choice.accumulation_steps);
  if (!choice.sequence_lengths.empty()) add("sequence_lengths", choice.sequence_lengths);
  if (!choice.first_token.empty()) add("first_token", choice.first_token);
  add_target_identity(choice, identity);
  add_optimizer_identity(choice, identity);
  add("learning_rate", choice.learning_rate);
  add("schedule", choice.schedule);
  add("warmup_steps", choice.warmup_steps);
  if (choice.warmup_init) add("warmup_init", *choice.warmup_init);
  if (choice.hold_steps != 0) add("hold_steps", choice.hold_steps);
  if (choice.decay_steps != 0) add("decay_steps", choice.decay_steps);
  if (choice.final_learning_rate != 0) add("final_learning_rate", choice.final_learning_rate);
  // A constant rate and sequences of one length don't depend on where the run ends.
  if (choice.schedule != "constant" || !choice.sequence_lengths.empty()) {
    add("iters", choice.num_steps);
  }
  if (choice.schedule == "wsd") add("decay_fraction", choice.decay_fraction);
  add("weight_decay", choice.weight_decay);
  add("max_grad_norm", choice.max_gradient_norm);
  add("seed", choice.seed);
  // The weights, and the types of what a pass computes with.
  add("dtype", dtype_name(model.weight_dtype));
  add("kv_cache_dtype", dtype_name(model.kv_dtype));
  add("quantize", option_name(settings.load.quantize));
  add("activations", option_name(settings.load.activations));
  if (model.weights_digest) add("weights", hex(*model.weights_digest));
  // Last, because options change it, too.
  add("data", hex(digest_of(data)));
  return identity;
}

// The clock that chat templates saw when the run began.
std::optional<std::string> clock_of_run(const fs::path& directory) {
  const fs::path file = directory / kRunFile;
  if (!fs::exists(file)) return std::nullopt;
  constexpr size_t kMaxBytes = 1 << 16;
  const Json json = parse_json(read_text_file(file, kMaxBytes), file.string());
  const auto now = JsonCursor(json, file.string()).find("now");
  return now ? std::optional(now->string()) : std::nullopt;
}

void write_clock(const fs::path& directory, const std::string& now) {
  const std::string text = object_json([&](JsonWriter& json) { json.member("now", now); });
  NewFile file(directory / kRunFile, NewFile::Existing::replace);
  file.append(text + "\n");
  file.commit();
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

void describe(const TrainData& data, const TrainTarget& target, const Settings& settings,
              Session& session) {
  const DatasetReport& report = data.report;
  session.print_note("{}: {} examples ({}), {} tokens, {} of them learnt; {} for evaluation",
                     report.file, report.num_examples, report.format, report.num_tokens,
                     report.num_counted, data.validation.size());
  print_notes(data.notes, session);
  if (const auto epochs = settings.train.num_epochs) {
    session.print_note("{} epochs: {} steps", *epochs, settings.train.num_steps);
  }
  session.print_note(target.description);
}

// Options that the data or the length of the run leave without effect.
void warn_of_idle_options(const TrainChoice& choice, const TrainData& data, Session& session) {
  const auto warn = [&](std::string_view text) { session.print_note("warning: {}", text); };
  const TrainChoice usual;
  if (choice.warmup_steps >= choice.num_steps) {
    warn(fmt::format("--warmup-steps: the learning rate doesn't reach its peak in {} of {} steps",
                     choice.num_steps, choice.warmup_steps));
  }
  if (!data.validation.empty()) return;
  constexpr std::string_view kWhy = "no effect without examples for evaluation (--valid-data)";
  if (choice.patience != usual.patience) warn(fmt::format("--patience: {}", kWhy));
  if (choice.validation_batches != usual.validation_batches) {
    warn(fmt::format("--val-batches: {}", kWhy));
  }
  if (choice.steps_per_evaluation != usual.steps_per_evaluation) {
    warn(fmt::format("--steps-per-eval: {}", kWhy));
  }
}

std::unique_ptr<LoadedModel> load_for_training(const Settings& settings, Session& session) {
  LoadOptions options = train_load_options(settings);
  std::optional<ByteProgress> progress(std::in_place, session);
  options.progress = progress->callback();
  auto model = load_model(options);
  progress.reset();
  print_weight_notes(model->weights_cache, settings, session);
  return model;
}

int dry_run(Trainer& trainer, TrainBatches& batches, const TrainChoice& choice, Memory& memory,
            Session& session) {
  memory.reset_peak();
  const auto begin = Clock::now();
  const StepReport report = trainer.step(batches.step(0));
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  session.out().write(
      fmt::format("one step: {} tokens learnt, {:.2f} s, loss {:.4f}\n{} steps: about {}, at most "
                  "{} of memory\n",
                  report.num_tokens, seconds, report.loss, choice.num_steps,
                  duration_text(seconds * static_cast<double>(choice.num_steps)),
                  bytes_text(memory.stats().peak_bytes)));
  return 0;
}

std::string end_text(const RunOutcome& outcome, const fs::path& directory) {
  switch (outcome.end) {
    case RunOutcome::End::finished:
      return fmt::format("{}: done after {} steps", directory.string(), outcome.num_steps);
    case RunOutcome::End::out_of_patience:
      return fmt::format("{}: no lower validation loss, ended after {} steps", directory.string(),
                         outcome.num_steps);
    case RunOutcome::End::stopped:
      break;
  }
  return fmt::format("{}: step {} is saved, --resume continues from it", directory.string(),
                     outcome.saved_step);
}

}  // namespace

int run_train(const Settings& asked, Session& session) {
  check_train_options(asked);
  const fs::path directory = asked.output;
  const auto model = load_for_training(asked, session);
  const TrainData data = read_train_data(
      asked.train, *model, asked.train.resume ? clock_of_run(directory) : std::nullopt);
  Settings settings = asked;
  settings.train.num_steps = num_run_steps(asked.train, data);
  const TrainChoice& choice = settings.train;
  const TrainTarget target = make_train_target(settings, *model);
  Trainer trainer(*model->backend, *model->threads, *model->decoder, *target.trained,
                  trainer_options(choice, *model));
  describe(data, target, settings, session);
  warn_of_idle_options(choice, data, session);
  TrainBatches batches(data.train, batch_options(choice, data), choice);
  if (choice.dry_run) return dry_run(trainer, batches, choice, model->backend->memory(), session);

  // From here on there is a directory to leave in order.
  const Interrupt::Graceful graceful(session.interrupt());
  const RunDirectory held(
      directory, choice.resume ? RunDirectory::Begins::resumed : RunDirectory::Begins::anew);
  write_clock(directory, data.report.now);
  TrainingRun run(trainer, directory,
                  {.num_steps = choice.num_steps,
                   .steps_per_report = choice.steps_per_report,
                   .steps_per_evaluation = choice.steps_per_evaluation,
                   .steps_per_checkpoint = choice.steps_per_checkpoint,
                   .patience = choice.patience},
                  identity_of(settings, *model, data), *target.result);
  const int64_t first_step = choice.resume ? run.resume() : 0;
  if (first_step > 0) session.print_note("continuing after step {}", first_step);
  const RunOutcome outcome =
      run.run({.batches = [&](int64_t step) { return batches.step(step); },
               .validation = validation_batches(data, choice)},
              Reporter(first_step, choice.num_steps, session), session.stop_token());
  session.explain_interruption(end_text(outcome, directory));
  if (outcome.end != RunOutcome::End::stopped) session.print_note(end_text(outcome, directory));
  return session.exit_code(0);
}

}  // namespace paceline
