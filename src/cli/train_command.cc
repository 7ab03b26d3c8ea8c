#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "adapters/adapter_files.h"
#include "base/json_cursor.h"
#include "base/json_writer.h"
#include "base/mapped_file.h"
#include "base/new_file.h"
#include "cli/command.h"
#include "cli/figures.h"
#include "cli/model_opening.h"
#include "cli/train_data.h"
#include "cli/train_plot.h"
#include "cli/usage_error.h"
#include "kernels/backend.h"
#include "load/model_adapter_base.h"
#include "load/model_source.h"
#include "models/decoder.h"
#include "trainer/adapter_result.h"
#include "trainer/training_run.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kRunFile = "run.json";

// Only the weights are needed: the cache is as small as it can be.
LoadOptions train_load_options(const Settings& settings) {
  LoadOptions options = load_options(settings);
  options.max_num_seqs = 1;
  options.max_model_len = 32;
  options.prefix_caching = false;
  return options;
}

LoraOptions lora_options(const TrainChoice& choice, const LoadedModel& model) {
  const int64_t num_layers = model.decoder->config().num_layers();
  const int64_t first_layer =
      choice.num_layers < 0 ? 0 : std::max<int64_t>(num_layers - choice.num_layers, 0);
  const auto shape_of = [=, targets = choice.target_modules, rank = choice.rank,
                         alpha = choice.alpha](std::string_view module) {
    const auto layer = split_layer_module(module);
    const std::string_view name = module.substr(module.rfind('.') + 1);
    const bool is_target =
        targets.empty() || std::find(targets.begin(), targets.end(), name) != targets.end();
    return is_target && layer && layer->layer >= first_layer
               ? std::optional(LoraShape{.rank = rank, .alpha = alpha})
               : std::nullopt;
  };
  DType dtype = model.weight_dtype == DType::f32 ? DType::f32 : DType::bf16;
  if (choice.lora_dtype != "auto") dtype = *parse_dtype(choice.lora_dtype);
  return {
      .shape_of = shape_of, .use_rslora = choice.use_rslora, .dtype = dtype, .seed = choice.seed};
}

TrainerOptions trainer_options(const TrainChoice& choice, const LoadedModel& model) {
  using Schedule = LearningRate::Schedule;
  const Schedule schedule = choice.schedule == "cosine"   ? Schedule::cosine
                            : choice.schedule == "linear" ? Schedule::linear
                                                          : Schedule::constant;
  return {.learning_rate = {.peak = choice.learning_rate,
                            .schedule = schedule,
                            .warmup_steps = choice.warmup_steps,
                            .num_steps = choice.num_steps},
          .optimizer = AdamWOptions{.weight_decay = choice.weight_decay},
          .max_gradient_norm = choice.max_gradient_norm,
          .dropout = choice.dropout,
          .seed = choice.seed,
          .pass = {.kv_dtype = model.kv_dtype, .checkpoints = choice.checkpoints}};
}

// What a resumed run must have in common with the one before.
RunIdentity identity_of(const TrainChoice& choice, const LoadedModel& model,
                        const TrainData& data) {
  RunIdentity identity;
  const auto add = [&](const char* name, const std::string& value) {
    identity.members.emplace_back(name, value);
  };
  const auto add_text = [&](const char* name, const std::string& value) {
    add(name, to_json(Json(value)));
  };
  add("num_parameters", fmt::format("{}", model.decoder->num_parameters()));
  add("num_examples", fmt::format("{}", data.report.num_examples));
  add("num_tokens", fmt::format("{}", data.report.num_tokens));
  add("num_counted", fmt::format("{}", data.report.num_counted));
  add("max_seq_length", fmt::format("{}", choice.max_seq_length));
  add("packing", choice.is_packed ? "true" : "false");
  add("batch", fmt::format("{}", choice.batch_size * choice.accumulation_steps));
  add("rank", fmt::format("{}", choice.rank));
  add("alpha", fmt::format("{}", choice.alpha));
  add("dropout", fmt::format("{}", choice.dropout));
  add("use_rslora", choice.use_rslora ? "true" : "false");
  add("num_layers", fmt::format("{}", choice.num_layers));
  add_text("target_modules", fmt::format("{}", fmt::join(choice.target_modules, ",")));
  add_text("lora_dtype", choice.lora_dtype);
  add("learning_rate", fmt::format("{}", choice.learning_rate));
  add_text("schedule", choice.schedule);
  add("warmup_steps", fmt::format("{}", choice.warmup_steps));
  // A constant rate doesn't depend on where the run ends.
  if (choice.schedule != "constant") add("iters", fmt::format("{}", choice.num_steps));
  add("weight_decay", fmt::format("{}", choice.weight_decay));
  add("max_grad_norm", fmt::format("{}", choice.max_gradient_norm));
  add("seed", fmt::format("{}", choice.seed));
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
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("now", now).end_object();
  NewFile file(directory / kRunFile, NewFile::Existing::replace);
  file.append(text + "\n");
  file.commit();
}

void prepare_directory(const fs::path& directory, bool resumes) {
  std::error_code error;
  if (fs::exists(directory, error) && !fs::is_empty(directory, error) && !resumes) {
    throw Error(
        ErrorCode::invalid,
        fmt::format("{}: has files already: give a new directory, or --resume the run in it",
                    directory.string()));
  }
  fs::create_directories(directory, error);
  if (error) {
    throw Error(ErrorCode::invalid, fmt::format("{}: {}", directory.string(), error.message()));
  }
}

std::string duration_text(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  if (seconds < 5400) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

// Reports of a run: a line each.
class Reporter {
 public:
  Reporter(int64_t first_step, int64_t num_steps, const Settings& settings, Session& session)
      : first_step_(first_step), num_steps_(num_steps), settings_(settings), session_(session) {}

  void operator()(const TrainingPoint& point) {
    if (!point.loss) begin_ = Clock::now();  // the evaluation before the first step
    if (settings_.quiet) return;
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
                       duration_text(left), bytes_text(static_cast<double>(point.peak_bytes)));
  }

  int64_t first_step_;
  int64_t num_steps_;
  const Settings& settings_;
  Session& session_;
  Clock::time_point begin_ = Clock::now();
};

void describe(const TrainData& data, const LoraSet& loras, const Settings& settings,
              Session& session) {
  if (settings.quiet) return;
  const DatasetReport& report = data.report;
  session.print_note(
      fmt::format("{}: {} examples ({}), {} tokens, {} of them learnt; {} for evaluation",
                  report.file, report.num_examples, report.format, report.num_tokens,
                  report.num_counted, data.validation.size()));
  for (const std::string& note : data.notes) session.print_note("note: " + note);
  session.print_note(fmt::format("LoRA on {} modules, {} parameters", loras.pairs().size(),
                                 grouped_number(static_cast<double>(loras.num_parameters()))));
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
                  bytes_text(static_cast<double>(memory.stats().peak_bytes))));
  session.out().flush();
  return 0;
}

void write_plot(const fs::path& directory, const TrainingRun& run) {
  NewFile file(directory / "losses.svg", NewFile::Existing::replace);
  file.append(loss_plot(run.points(), "Losses of " + directory.filename().string()));
  file.commit();
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
  return fmt::format("{}: step {} is saved, --resume goes on", directory.string(),
                     outcome.saved_step);
}

}  // namespace

int run_train(const Settings& settings, Session& session) {
  const TrainChoice& choice = settings.train;
  if (choice.data.empty()) throw UsageError("nothing to learn: give --data PATH");
  if (settings.output.empty() && !choice.dry_run) {
    throw UsageError("nowhere to write: give --output DIR");
  }
  const Interrupt::Graceful graceful(session.interrupt());
  const fs::path directory = settings.output;
  const auto model = load_model(train_load_options(settings));
  Backend& backend = *model->backend;
  const TrainData data =
      read_train_data(choice, *model, choice.resume ? clock_of_run(directory) : std::nullopt);
  const AdapterBase base = read_adapter_base(ModelSource(model_path(settings)));
  LoraSet loras(backend, *model->decoder, lora_options(choice, *model));
  if (!choice.initial_adapter.empty()) {
    loras.load(backend, read_adapter(choice.initial_adapter, base, model->memory));
  }
  Trainer trainer(backend, *model->threads, *model->decoder, loras,
                  trainer_options(choice, *model));
  describe(data, loras, settings, session);
  TrainBatches batches(data.train, batch_options(choice));
  if (choice.dry_run) return dry_run(trainer, batches, choice, model->memory, session);

  const AdapterResult result(loras, base, model_path(settings).string(), model->memory);
  prepare_directory(directory, choice.resume);
  write_clock(directory, data.report.now);
  TrainingRun run(trainer, directory,
                  {.num_steps = choice.num_steps,
                   .steps_per_report = choice.steps_per_report,
                   .steps_per_evaluation = choice.steps_per_evaluation,
                   .steps_per_checkpoint = choice.steps_per_checkpoint,
                   .patience = choice.patience},
                  identity_of(choice, *model, data), result);
  const int64_t first_step = choice.resume ? run.resume() : 0;
  if (first_step > 0 && !settings.quiet) {
    session.print_note(fmt::format("going on behind step {}", first_step));
  }
  const RunOutcome outcome =
      run.run({.batches = [&](int64_t step) { return batches.step(step); },
               .validation = validation_batches(data.validation, choice)},
              Reporter(first_step, choice.num_steps, settings, session), session.stop_token());
  write_plot(directory, run);
  session.explain_interruption(end_text(outcome, directory));
  if (!settings.quiet && outcome.end != RunOutcome::End::stopped) {
    session.print_note(end_text(outcome, directory));
  }
  return session.exit_code(0);
}

}  // namespace paceline
