#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/json_writer.h"
#include "cli/bench_measure.h"
#include "cli/bench_model.h"
#include "cli/bench_plot.h"
#include "cli/bench_report.h"
#include "cli/command.h"
#include "cli/model_opening.h"
#include "cli/text_file.h"
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

int show_plan(const Settings& settings, const std::vector<BenchVariant>& variants,
              Session& session) {
  std::vector<BenchModel> models;
  for (const BenchVariant& variant : variants) {
    models.push_back(find_bench_model(settings, variant));
    if (settings.quiet) continue;
    for (const std::string& note : models.back().planned.notes) session.print_note(note);
  }
  session.out().write(settings.json ? plan_json(variants, models) : plan_text(variants, models));
  session.out().flush();
  return 0;
}

BenchReport measure_variant(const Settings& settings, const BenchVariant& variant,
                            Session& session) {
  constexpr double kSlowdown = 2.5;  // serve's
  BenchModel found = find_bench_model(settings, variant);
  if (!settings.quiet) {
    for (const std::string& note : found.planned.notes) session.print_note(note);
  }
  if (session.shows_progress(settings))
    session.print_note(fmt::format("loading {} ...", found.name));
  BenchReport report;
  const auto model = load_bench_model(found, report);
  print_weights_cache(model->weights_cache, settings, session);
  found.directory.reset();
  std::optional<TraceWriter> trace;
  if (!settings.load.trace_file.empty()) {
    trace.emplace(settings.load.trace_file, found.name, *model->engine);
  }
  report.rows = measure_runs(
      *model, {.runs = found.planned.runs,
               .costs = model_costs(found.config),
               .decode_bytes = report.decode_bytes,
               .repetitions = settings.bench.repetitions,
               .max_step_slowdown = settings.max_step_slowdown.value_or(kSlowdown),
               .observer = trace ? &*trace : nullptr,
               .notice =
                   [&](const BenchRun& run) {
                     if (!session.shows_progress(settings)) return;
                     session.print_note(fmt::format("{}: {}", found.name, bench_run_name(run)));
                   },
               .stop = session.stop_token()});
  if (settings.bench.roofline) report.choices = model->backend->measured_choices();
  if (trace) trace->finish();
  return report;
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
  // Fails now rather than after minutes of measuring.
  const bool draws = !settings.bench.svg.empty();
  if (draws) write_whole_file(settings.bench.svg, "");
  const MachineReport machine = measure_machine(settings, variants);
  const Interrupt::Graceful graceful(session.interrupt());
  std::vector<BenchReport> reports;
  for (const BenchVariant& variant : variants) {
    if (session.interrupted()) break;
    reports.push_back(measure_variant(settings, variant, session));
  }
  if (draws) write_whole_file(settings.bench.svg, draw_bench(machine, reports));
  session.out().write(settings.json ? bench_json(machine, reports) : bench_text(machine, reports));
  session.out().flush();
  session.explain_interruption("the rest was not measured");
  return session.exit_code(0);
}

}  // namespace paceline
