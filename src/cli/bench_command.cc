#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json_writer.h"
#include "base/new_directory.h"
#include "base/option_names.h"
#include "cli/bench_measure.h"
#include "cli/bench_report.h"
#include "cli/command.h"
#include "cli/model_opening.h"
#include "cli/settings.h"
#include "cli/usage_error.h"
#include "engine/engine.h"
#include "engine/trace_writer.h"
#include "kernels/cuda/device.h"
#include "load/draft_model.h"
#include "load/model_source.h"
#include "load/processor_name.h"
#include "load/stored_model.h"
#include "load/weight_info.h"
#include "models/decoder_config.h"

namespace paceline {
namespace {

// A variant whose configuration was read, but not its weights.
struct BenchModel {
  std::string name;
  LoadOptions options;
  DecoderConfig config;
  BenchRuns planned;
  std::unique_ptr<TemporaryDirectory> directory;  // of a shape: its config.json
};

struct Shape {
  std::string_view name;
  std::string_view config;
};

// The sizes are those of the published config.json files; small is ours, some 160 M weights.
constexpr Shape kShapes[] = {
    {"small", R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 1024,
      "intermediate_size": 4096, "num_hidden_layers": 8, "num_attention_heads": 16,
      "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 131072,
      "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "hidden_act": "silu",
      "tie_word_embeddings": true, "torch_dtype": "bfloat16"})"},
    {"llama-3.2-1b", R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 2048,
      "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
      "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 131072,
      "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "hidden_act": "silu",
      "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0,
                       "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
      "tie_word_embeddings": true, "torch_dtype": "bfloat16"})"},
    {"qwen3-0.6b", R"({"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 1024,
      "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16,
      "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960,
      "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "hidden_act": "silu",
      "tie_word_embeddings": true, "torch_dtype": "bfloat16"})"},
    {"qwen3.5-0.8b", R"({"model_type": "qwen3_5_text", "vocab_size": 248320, "hidden_size": 1024,
      "intermediate_size": 3584, "num_hidden_layers": 24, "num_attention_heads": 8,
      "num_key_value_heads": 2, "head_dim": 256, "max_position_embeddings": 262144,
      "rms_norm_eps": 1e-6, "rope_parameters": {"rope_type": "default", "rope_theta": 10000000.0,
                                                "partial_rotary_factor": 0.25},
      "linear_num_key_heads": 16, "linear_num_value_heads": 16, "linear_key_head_dim": 128,
      "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "hidden_act": "silu",
      "tie_word_embeddings": true, "torch_dtype": "bfloat16"})"},
    {"gemma-3-1b", R"({"model_type": "gemma3_text", "vocab_size": 262144, "hidden_size": 1152,
      "intermediate_size": 6912, "num_hidden_layers": 26, "num_attention_heads": 4,
      "num_key_value_heads": 1, "head_dim": 256, "max_position_embeddings": 32768,
      "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0,
      "query_pre_attn_scalar": 256, "sliding_window": 512, "sliding_window_pattern": 6,
      "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": true,
      "torch_dtype": "bfloat16"})"},
    {"olmoe-1b-7b", R"({"model_type": "olmoe", "vocab_size": 50304, "hidden_size": 2048,
      "intermediate_size": 1024, "num_hidden_layers": 16, "num_attention_heads": 16,
      "num_key_value_heads": 16, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5,
      "rope_theta": 10000.0, "hidden_act": "silu", "num_experts": 64, "num_experts_per_tok": 8,
      "norm_topk_prob": false, "tie_word_embeddings": false, "torch_dtype": "bfloat16"})"},
};

void apply_format(const std::string& format, LoadOptions& options) {
  if (format.empty()) return;
  options.quantize = find_option_value<LoadQuantization>(format).value_or(LoadQuantization::none);
  if (format == "f32") options.dtype = DataType::float32;
  if (format == "f16") options.dtype = DataType::float16;
  if (format == "bf16") options.dtype = DataType::bfloat16;
}

// A model directory with nothing but the config.json of a shape, which is one of --shape's choices.
std::unique_ptr<TemporaryDirectory> make_shape_directory(std::string_view shape) {
  const Shape* found = nullptr;
  for (const Shape& candidate : kShapes) {
    if (candidate.name == shape) found = &candidate;
  }
  PL_CHECK(found != nullptr, "a shape that --shape offers has no config");
  auto directory = std::make_unique<TemporaryDirectory>([] {
    std::string path = (std::filesystem::temp_directory_path() / "paceline-shape-XXXXXX").string();
    if (mkdtemp(path.data()) != nullptr) return path;
    throw error_of(ErrorCode::invalid, "{}: {}", path, std::strerror(errno));
  });
  std::ofstream file(directory->path() / "config.json");
  file << found->config;
  if (!file.flush())
    throw error_of(ErrorCode::exhausted, "{}: can't be written", directory->path().string());
  return directory;
}

// Resident memory of this process; 0 where the system doesn't report it.
int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all_pages = 0, resident_pages = 0;
  file >> all_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

void fit_to_runs(const std::vector<BenchRun>& runs, LoadOptions& options) {
  int64_t context = 1, sequences = 1;
  for (const BenchRun& run : runs) {
    context = std::max(context, context_of(run));
    sequences = std::max(sequences, sequences_of(run));
  }
  // A longer cache would waste memory.
  if (!options.max_model_len) options.max_model_len = context;
  options.max_num_seqs = sequences;
  // No run is refused.
  options.max_queued = 2 * sequences;
  options.max_queued_tokens = std::numeric_limits<int32_t>::max();
}

BenchDrafting drafting_of(const LoadOptions& asked, const ModelSource& source) {
  const LoadOptions options = with_speculative_config(asked);
  BenchDrafting drafting{.has_tokenizer = source.files().contains("tokenizer.json")};
  if (!options.speculative_model.empty()) drafting.drafter = BenchDrafter::model;
  if (options.speculative_method == DraftMethod::ngram) drafting.drafter = BenchDrafter::ngram;
  drafting.longest = options.num_speculative_tokens.value_or(drafting.longest);
  return drafting;
}

// Says which runs are shortened. Throws Error as reading a model does.
BenchModel find_bench_model(const Settings& settings, const BenchVariant& variant,
                            Session& session) {
  BenchModel found;
  found.options = settings.load;
  found.options.num_threads = static_cast<int>(variant.threads);
  apply_format(variant.format, found.options);
  std::filesystem::path path;
  if (variant.shape.empty()) {
    check_load_format(settings);
    path = model_path(settings);
    found.name = path.filename().string();
  } else {
    found.directory = make_shape_directory(variant.shape);
    path = found.directory->path();
    found.options.load_format = LoadFormat::dummy;
    found.name = variant.shape;
  }
  found.options.model = path;
  const ModelSource source(path);
  found.config = read_model_config(source, found.options.load_format);
  const int64_t longest = std::min(found.config.max_position,
                                   found.options.max_model_len.value_or(found.config.max_position));
  found.planned = plan_runs(variant.choice, longest, drafting_of(found.options, source));
  for (const std::string& note : found.planned.notes) session.print_note(note);
  fit_to_runs(found.planned.runs, found.options);
  return found;
}

// Loads it with the context that the runs need, and fills in the report except its rows.
std::unique_ptr<LoadedModel> load_bench_model(const BenchModel& found, BenchReport& report) {
  malloc_trim(0);  // memory of an earlier model is not counted
  const int64_t resident = resident_bytes();
  const auto begin = std::chrono::steady_clock::now();
  auto model = load_model(found.options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const WeightInfo weights = weight_info(*model->decoder);
  report = {.name = found.name,
            .has_dummy_weights = found.options.load_format == LoadFormat::dummy,
            .dtype = std::string(dtype_name(model->weight_dtype)),
            .weight_format = weights.format,
            .products = products_of(*model),
            .device = model->machine->device ? model->machine->device->info().name : "",
            .threads = model->threads->num_threads(),
            .load_seconds = took.count(),
            .resident_bytes = resident_bytes() - resident,
            .weight_bytes = model->weight_bytes,
            .decode_bytes = weights.bytes,
            .notes = found.planned.notes};
  return model;
}

std::string plan_json(const std::vector<BenchVariant>& variants,
                      const std::vector<BenchModel>& models) {
  const std::string json = object_json([&](JsonWriter& writer) {
    writer.key("plan").begin_array();
    for (size_t i = 0; i < models.size(); ++i) {
      writer.begin_object().member("model", models[i].name).member("format", variants[i].format);
      writer.member("threads", variants[i].threads).key("runs").begin_array();
      for (const BenchRun& run : models[i].planned.runs) writer.string(bench_run_name(run));
      writer.end_array().end_object();
    }
    writer.end_array();
  });
  return json + "\n";
}

std::string plan_text(const std::vector<BenchVariant>& variants,
                      const std::vector<BenchModel>& models) {
  std::string text;
  for (size_t i = 0; i < models.size(); ++i) {
    const std::string threads =
        variants[i].threads == 0 ? "" : fmt::format(", threads: {}", variants[i].threads);
    text += fmt::format("{}{}{}\n", models[i].name,
                        variants[i].format.empty() ? "" : ", " + variants[i].format, threads);
    for (const BenchRun& run : models[i].planned.runs) {
      text += fmt::format("  {}\n", bench_run_name(run));
    }
  }
  return text;
}

int show_plan(const Settings& settings, const std::vector<BenchVariant>& variants,
              Session& session) {
  std::vector<BenchModel> models;
  for (const BenchVariant& variant : variants) {
    models.push_back(find_bench_model(settings, variant, session));
  }
  session.out().write(settings.json ? plan_json(variants, models) : plan_text(variants, models));
  return 0;
}

// What was measured so far. A signal at any time, also while a model is loaded, writes it and ends
// the program.
class BenchOutput {
 public:
  BenchOutput(MachineReport machine, const Settings& settings, Session& session)
      : machine_(std::move(machine)),
        settings_(settings),
        session_(session),
        handler_(session.interrupt(), [this](int number) { end(number); }) {
    session.explain_interruption("the rest was not measured");
  }

  // Begins the report of a loaded model.
  void add(BenchReport report) {
    const std::lock_guard lock(mutex_);
    reports_.push_back(std::move(report));
  }
  // Changes the last report.
  void change(const std::function<void(BenchReport&)>& change) {
    const std::lock_guard lock(mutex_);
    change(reports_.back());
  }
  void write() {
    const std::lock_guard lock(mutex_);
    session_.out().print(settings_.json ? bench_json(machine_, reports_)
                                        : bench_text(machine_, reports_));
  }

 private:
  [[noreturn]] void end(int number) {
    try {
      write();
    } catch (const std::exception& error) {
      session_.print_error(error.what());
    } catch (const OutputClosed&) {
    }
    std::fflush(nullptr);  // a trace ends with a whole line
    session_.interrupt().end(number);
  }

  MachineReport machine_;
  const Settings& settings_;
  Session& session_;
  std::mutex mutex_;
  std::vector<BenchReport> reports_;  // guarded by mutex_
  Interrupt::Handler handler_;        // last: it calls into the others
};

void measure_variant(const Settings& settings, const BenchVariant& variant, BenchOutput& output,
                     Session& session) {
  constexpr double kSlowdown = 2.5;  // serve's
  BenchModel found = find_bench_model(settings, variant, session);
  if (session.shows_progress()) session.print_note("loading {} ...", found.name);
  BenchReport report;
  std::optional<ByteProgress> progress(std::in_place, session);
  found.options.progress = progress->callback();
  const auto model = load_bench_model(found, report);
  progress.reset();
  print_weight_notes(model->weights_cache, settings, session);
  found.directory.reset();
  std::optional<TraceWriter> trace;
  if (!settings.load.trace_file.empty()) {
    trace.emplace(settings.load.trace_file, found.name, model->engine->limits(), *model->cache);
  }
  const size_t decode_bytes = report.decode_bytes;
  output.add(std::move(report));
  measure_runs(*model,
               {.runs = found.planned.runs,
                .costs = model_costs(found.config),
                .decode_bytes = decode_bytes,
                .repetitions = settings.bench.repetitions,
                .max_step_slowdown = settings.max_step_slowdown.value_or(kSlowdown),
                .observer = trace ? &*trace : nullptr,
                .notice =
                    [&](const BenchRun& run) {
                      if (!session.shows_progress()) return;
                      session.print_note("{}: {}", found.name, bench_run_name(run));
                    },
                .done =
                    [&](BenchRow row) {
                      output.change([&](BenchReport& all) { all.rows.push_back(std::move(row)); });
                    }});
  if (settings.bench.roofline) {
    output.change([&](BenchReport& all) { all.choices = model->backend->measured_choices(); });
  }
  if (trace) trace->finish();
}

bool has_drafter(const LoadOptions& options) {
  return !options.speculative_model.empty() ||
         options.speculative_method != DraftMethod::automatic ||
         !options.speculative_config.empty();
}

MachineReport measure_machine(const Settings& settings, const std::vector<BenchVariant>& variants) {
  constexpr double kSeconds = 0.25;
  int64_t most_threads = 0;  // of the options: 0 is one per core
  for (const BenchVariant& variant : variants) {
    most_threads = variant.threads == 0 ? 0 : std::max(most_threads, variant.threads);
    if (variant.threads == 0) break;
  }
  ThreadPool threads(static_cast<int>(most_threads));
  MachineReport machine{
      .processor = processor_name(), .isa = choose_isa(), .threads = threads.num_threads()};
  if (!settings.bench.roofline) return machine;
  Memory memory;
  machine.roofline = measure_roofline(machine.isa, threads, memory, kSeconds);
  const auto isas = available_isas();
  const bool has_vectors = std::find(isas.begin(), isas.end(), Isa::avx512bf16) != isas.end();
  if (has_vectors && machine.isa != Isa::avx512bf16) {
    RooflineMeter vectors(Isa::avx512bf16, threads, memory);
    machine.vdpbf16ps_flops_per_s = vectors.operations_per_s(ProductKind::bf16, kSeconds);
  }
  return machine;
}

}  // namespace

int run_bench(const Settings& settings, Session& session) {
  const auto variants = plan_variants(settings.bench, !settings.load.model.empty());
  for (std::string_view option :
       idle_options(settings.bench, variants, has_drafter(settings.load))) {
    session.print_note("warning: {}: no effect on what is measured", option);
  }
  if (settings.bench.plan) return show_plan(settings, variants, session);
  if (settings.bench.roofline && settings.load.device.starts_with("cuda")) {
    throw UsageError("--roofline: measures the CPU; leave it out with --device " +
                     settings.load.device + ", whose limits are measured beside each run");
  }
  if (!settings.load.trace_file.empty() && variants.size() > 1) {
    throw UsageError(
        "--trace: {} variants are to be measured, expected one: give --model or "
        "--shape, one of --formats and of --threads",
        variants.size());
  }
  BenchOutput output(measure_machine(settings, variants), settings, session);
  for (const BenchVariant& variant : variants) measure_variant(settings, variant, output, session);
  output.write();
  return 0;
}

}  // namespace paceline
