#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "base/json_writer.h"
#include "cli/bench_measure.h"
#include "cli/bench_model.h"
#include "cli/bench_report.h"
#include "cli/command.h"
#include "cli/model_opening.h"
#include "cli/usage_error.h"
#include "engine/engine.h"
#include "engine/trace_writer.h"
#include "load/processor_name.h"

namespace paceline {
namespace {

std::string plan_json(const std::vector<BenchVariant>& variants,
                      const std::vector<BenchModel>& models) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().key("plan").begin_array();
  for (size_t i = 0; i < models.size(); ++i) {
    writer.begin_object().member("model", models[i].name).member("format", variants[i].format);
    writer.member("threads", variants[i].threads).key("runs").begin_array();
    for (const BenchRun& run : models[i].planned.runs) writer.string(bench_run_name(run));
    writer.end_array().end_object();
  }
  writer.end_array().end_object();
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

void print_notes(const std::vector<std::string>& notes, const Settings& settings,
                 Session& session) {
  if (settings.quiet) return;
  for (const std::string& note : notes) session.print_note(note);
}

int show_plan(const Settings& settings, const std::vector<BenchVariant>& variants,
              Session& session) {
  std::vector<BenchModel> models;
  for (const BenchVariant& variant : variants) {
    models.push_back(find_bench_model(settings, variant));
    print_notes(models.back().planned.notes, settings, session);
  }
  session.out().write(settings.json ? plan_json(variants, models) : plan_text(variants, models));
  session.out().flush();
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
    session_.out().write(settings_.json ? bench_json(machine_, reports_)
                                        : bench_text(machine_, reports_));
    session_.out().flush();
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
  BenchModel found = find_bench_model(settings, variant);
  print_notes(found.planned.notes, settings, session);
  if (session.shows_progress(settings))
    session.print_note(fmt::format("loading {} ...", found.name));
  BenchReport report;
  std::optional<LoadProgress> progress(std::in_place, settings, session);
  found.options.progress = progress->callback();
  const auto model = load_bench_model(found, report);
  progress.reset();
  print_unread_weights(settings, session);
  print_weights_cache(model->weights_cache, settings, session);
  found.directory.reset();
  std::optional<TraceWriter> trace;
  if (!settings.load.trace_file.empty()) {
    trace.emplace(settings.load.trace_file, found.name, *model->engine);
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
                      if (!session.shows_progress(settings)) return;
                      session.print_note(fmt::format("{}: {}", found.name, bench_run_name(run)));
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
  return !options.speculative_model.empty() || !options.speculative_method.empty() ||
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
    if (settings.quiet) break;
    session.print_note(fmt::format("warning: {}: no effect on what is measured", option));
  }
  if (settings.bench.plan) return show_plan(settings, variants, session);
  if (settings.bench.roofline && settings.load.device.starts_with("cuda")) {
    throw UsageError("--roofline: measures the CPU; leave it out with --device " +
                     settings.load.device + ", whose limits are measured beside each run");
  }
  if (!settings.load.trace_file.empty() && variants.size() > 1) {
    throw UsageError(
        fmt::format("--trace: {} variants are to be measured, expected one: give "
                    "--model or --shape, one of --formats and of --threads",
                    variants.size()));
  }
  BenchOutput output(measure_machine(settings, variants), settings, session);
  for (const BenchVariant& variant : variants) measure_variant(settings, variant, output, session);
  output.write();
  return 0;
}

}  // namespace paceline
