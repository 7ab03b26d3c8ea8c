#include "paceline/training.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/json_cursor.h"
#include "base/json_writer.h"
#include "base/mapped_file.h"
#include "base/new_file.h"
#include "base/time_source.h"
#include "finetune/option_faults.h"
#include "finetune/run_identity.h"
#include "finetune/training_data.h"
#include "finetune/training_target.h"
#include "kernels/backend.h"
#include "load/loaded_model.h"
#include "models/decoder.h"
#include "trainer/run_directory.h"
#include "trainer/trainer.h"
#include "trainer/training_run.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRunFile = "run.json";

// Of a cache that nothing uses.
constexpr size_t kTrainingKvBytes = size_t{64} << 20;

// Only the weights are needed: the cache is as small as it can be.
LoadOptions load_options(const TrainOptions& options) {
  LoadOptions load = options.model;
  if (load.device == "auto") load.device = "cpu";
  if (load.device != "cpu") {
    // Else it would take what weights leave of a GPU's memory.
    load.kv_cache_memory_bytes = kTrainingKvBytes;
  } else if (!load.cache_limit_bytes) {  // a GPU's memory is slow to give back
    load.cache_limit_bytes = kTrainingCacheBytes;
  }
  load.max_num_seqs = 1;
  load.max_model_len = 32;
  load.prefix_caching = false;
  if (options.from_scratch) load.load_format = LoadFormat::dummy;
  load.fingerprint = load.load_format == LoadFormat::files;  // a resumed run has the same
  return load;
}

LearningRate learning_rate(const TrainOptions& options) {
  return {.peak = options.learning_rate,
          .schedule = options.schedule,
          .warmup_steps = options.warmup_steps,
          .warmup_init = options.warmup_init,
          .hold_steps = options.hold_steps,
          .num_steps = options.num_steps,
          .decay_steps = options.decay_steps,
          .last = options.final_learning_rate,
          .decay_fraction = options.decay_fraction};
}

std::variant<AdamWOptions, MuonOptions> optimizer_options(const TrainOptions& options,
                                                          const LoadedModel& model) {
  AdamWOptions adamw{.beta1 = options.beta1,
                     .beta2 = options.beta2,
                     .epsilon = options.epsilon,
                     .weight_decay = options.weight_decay};
  if (options.optimizer == OptimizerKind::adamw) return adamw;
  adamw.weight_decay = options.adamw_weight_decay;
  MuonOptions muon{.momentum = options.muon_momentum,
                   .weight_decay = options.weight_decay,
                   .dtype = model.weight_dtype == DType::f32 ? DType::f32 : DType::bf16,
                   .adamw = adamw};
  if (options.adamw_learning_rate) {
    muon.adamw_rate = *options.adamw_learning_rate / options.learning_rate;
  }
  return muon;
}

TrainerOptions trainer_options(const TrainOptions& options, const LoadedModel& model) {
  return {.learning_rate = learning_rate(options),
          .optimizer = optimizer_options(options, model),
          .max_gradient_norm = options.max_gradient_norm,
          .dropout = options.dropout,
          .seed = options.seed,
          .pass = {.kv_dtype = model.kv_dtype,
                   .kept_bytes = options.checkpoints ? kKeptActivationBytes : kAllActivations}};
}

TrainingRunOptions run_options(const TrainOptions& options) {
  return {.num_steps = options.num_steps,
          .steps_per_report = options.steps_per_report,
          .steps_per_evaluation = options.steps_per_evaluation,
          .steps_per_checkpoint = options.steps_per_checkpoint,
          .patience = options.patience};
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

DataType data_type(DType dtype) {
  return dtype == DType::f32   ? DataType::float32
         : dtype == DType::f16 ? DataType::float16
                               : DataType::bfloat16;
}

TrainingPlan plan_of(const TrainOptions& options, const LoadedModel& model,
                     const TrainingData& data, const TrainingTarget& target) {
  return {.data_file = data.report.file,
          .data_format = data.report.format,
          .num_examples = data.report.num_examples,
          .num_tokens = data.report.num_tokens,
          .num_counted_tokens = data.report.num_counted,
          .num_validation_examples = static_cast<int64_t>(data.validation.size()),
          .num_steps = options.num_steps,
          .num_modules = target.num_modules,
          .num_parameters = target.trained->num_parameters(),
          .dtype = data_type(target.dtype),
          .notes = data.notes,
          .weights_cache = model.weights_cache};
}

}  // namespace

// Members refer to those above them.
struct Training::State {
  // The directory of a run that has begun.
  struct Begun {
    RunDirectory held;
    TrainingRun run;
    int64_t first_step = 0;
  };

  TrainOptions options;
  std::unique_ptr<LoadedModel> model;
  TrainingData data;
  TrainingTarget target;
  TrainingPlan plan;
  std::unique_ptr<Trainer> trainer;
  std::unique_ptr<TrainBatches> batches;
  std::unique_ptr<Begun> begun;
  bool is_over = false;

  explicit State(const TrainOptions& asked)
      : options(asked),
        model(load_model(load_options(asked))),
        data(read_training_data(asked, *model,
                                asked.resume ? clock_of_run(asked.output) : std::nullopt)) {
    options.num_steps = num_run_steps(options, data);
    target = make_training_target(options, *model);
    plan = plan_of(options, *model, data, target);
    trainer = std::make_unique<Trainer>(*model->backend, *model->threads, *model->decoder,
                                        *target.trained, trainer_options(options, *model));
    batches = std::make_unique<TrainBatches>(data.train, batch_options(options, data), options);
  }

  // Throws Error invalid when the steps were taken already.
  void take_steps() {
    if (is_over) {
      throw Error(ErrorCode::invalid, "training: its steps were taken already; open another one");
    }
    is_over = true;
  }
};

Training::Training(std::unique_ptr<State> state) : state_(std::move(state)) {}
Training::Training(Training&&) noexcept = default;
Training& Training::operator=(Training&&) noexcept = default;
Training::~Training() = default;

Training Training::open(const TrainOptions& options) {
  if (const auto fault = find_option_fault(options)) throw Error(ErrorCode::invalid, *fault);
  return Training(std::make_unique<State>(options));
}

const TrainingPlan& Training::plan() const { return state_->plan; }

StepCost Training::measure_step() {
  State& state = *state_;
  state.take_steps();
  Memory& memory = state.model->backend->memory();
  memory.reset_peak();
  const auto begin = Clock::now();
  const StepReport report = state.trainer->step(state.batches->step(0));
  return {.loss = report.loss,
          .num_tokens = report.num_tokens,
          .seconds = std::chrono::duration<double>(Clock::now() - begin).count(),
          .peak_bytes = memory.stats().peak_bytes};
}

int64_t Training::begin() {
  State& state = *state_;
  if (state.begun != nullptr) return state.begun->first_step;
  const TrainOptions& options = state.options;
  if (options.output.empty()) {
    throw Error(ErrorCode::invalid, "nowhere to write: give --output DIR");
  }
  using Begins = RunDirectory::Begins;
  auto begun = std::unique_ptr<State::Begun>(new State::Begun{
      .held = {options.output, options.resume ? Begins::resumed : Begins::anew},
      .run = {*state.trainer, options.output, run_options(options),
              identity_of(options, *state.model, state.data), *state.target.result}});
  write_clock(options.output, state.data.report.now);
  if (options.resume) begun->first_step = begun->run.resume();
  state.begun = std::move(begun);
  return state.begun->first_step;
}

TrainingOutcome Training::run(const std::function<void(const TrainingPoint&)>& report,
                              const std::stop_token& stop) {
  begin();
  State& state = *state_;
  state.take_steps();
  const RunData data{.batches = [&](int64_t step) { return state.batches->step(step); },
                     .validation = validation_batches(state.data, state.options)};
  return state.begun->run.run(
      data, report ? report : [](const TrainingPoint&) {}, stop);
}

}  // namespace paceline
