#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>

#include "base/json_writer.h"
#include "cli/batch_bench.h"
#include "cli/bench_measure.h"
#include "cli/bench_shapes.h"
#include "cli/command.h"
#include "cli/model_opening.h"
#include "cli/progress.h"
#include "load/loaded_model.h"
#include "load/model_source.h"

namespace paceline {
namespace {

struct ModelBench {
  std::string name;
  ModelInfo info;
  DeviceInfo device;
  std::vector<BenchResult> results;
};

// Just long enough: the cache of a long context would take memory for nothing.
int64_t context_for(const Settings& settings, const DecoderConfig& config) {
  const int64_t needed = std::max(settings.prompt_tokens, settings.output_tokens) + 2;
  if (needed > config.max_position) {
    throw Error(ErrorCode::invalid,
                fmt::format("--prompt-tokens {}, --output-tokens {}: the model's context is {} "
                            "tokens, 2 of which are needed beside",
                            settings.prompt_tokens, settings.output_tokens, config.max_position));
  }
  return needed;
}

// `shape` empty: the model that the options name.
ModelBench bench_one(const Settings& settings, std::string_view shape, Session& session) {
  Settings of_model = settings;
  std::optional<ShapeDirectory> directory;
  if (!shape.empty()) {
    directory.emplace(shape);
    of_model.load.model = directory->path();
    of_model.load.load_format = LoadFormat::dummy;
  }
  const std::filesystem::path path = model_path(of_model);
  const DecoderConfig config = read_model_config(ModelSource(path), of_model.load.load_format);
  of_model.load.max_num_seqs = 1;
  of_model.load.prefix_caching = false;  // repetitions begin alike, and each is to be computed
  if (!of_model.load.max_model_len) of_model.load.max_model_len = context_for(settings, config);
  ModelBench bench;
  bench.name = shape.empty() ? path.filename().string() : std::string(shape);
  LLM llm = open_model(of_model, session);
  directory.reset();
  bench.info = llm.model_info();
  bench.device = llm.device_info();
  RooflineSampler roofline(choose_isa(), bench.device.num_threads);
  bench.results = measure_model(llm, model_costs(config),
                                {.prompt_tokens = settings.prompt_tokens,
                                 .output_tokens = settings.output_tokens,
                                 .repetitions = settings.repetitions},
                                roofline);
  return bench;
}

bool is_prefill(const BenchResult& result) { return result.test == "prefill"; }

// Where float32 multiply-adds serve bfloat16 products, what the instruction made for them would do.
std::string vdpbf16ps_lines(const std::vector<ModelBench>& benches) {
  std::string lines;
  for (const ModelBench& bench : benches) {
    if (bench.device.instruction_set == isa_name(Isa::avx512bf16)) continue;
    for (const BenchResult& result : bench.results) {
      if (result.vdpbf16ps_flops_per_s <= 0) continue;
      lines += fmt::format("{:<14} {} {}: {:.0f}% of the vdpbf16ps rate ({} GFLOP/s)\n", bench.name,
                           result.test, result.tokens, 100 * result.vdpbf16ps_fraction,
                           grouped_number(result.vdpbf16ps_flops_per_s / 1e9));
    }
  }
  return lines.empty() ? lines : "\n" + lines;
}

std::string bench_table(const std::vector<ModelBench>& benches) {
  const DeviceInfo& device = benches.front().device;
  std::string table = fmt::format(
      "{}, {}, {} thread{}\n\n{:<14} {:<9} {:<12} {:>10} {:>16} {:>16} {:>6}\n", device.name,
      device.instruction_set, device.num_threads, device.num_threads == 1 ? "" : "s", "model",
      "weights", "test", "tok/s", "reached", "machine", "share");
  for (const ModelBench& bench : benches) {
    for (const BenchResult& result : bench.results) {
      const std::string_view products = bench.info.integer_products ? "GOP/s" : "GFLOP/s";
      const std::string_view unit = is_prefill(result) ? products : "GB/s";
      const auto rate = [&](double value) {
        return fmt::format("{} {:<7}", grouped_number(value / 1e9), unit);
      };
      table +=
          fmt::format("{:<14} {:<9} {:<12} {:>10} {:>16} {:>16} {:>5.0f}%\n", bench.name,
                      bench.info.weight_format, fmt::format("{} {}", result.test, result.tokens),
                      grouped_number(result.tokens_per_s), rate(result.work_per_s),
                      rate(result.roofline_per_s), 100 * result.fraction);
    }
  }
  return table + vdpbf16ps_lines(benches);
}

std::string bench_json(const std::vector<ModelBench>& benches) {
  const DeviceInfo& device = benches.front().device;
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().member("machine", device.name);
  writer.member("instruction_set", device.instruction_set).member("threads", device.num_threads);
  writer.key("results").begin_array();
  for (const ModelBench& bench : benches) {
    for (const BenchResult& result : bench.results) {
      const bool flops = is_prefill(result);
      writer.begin_object()
          .member("model", bench.name)
          .member("dtype", bench.info.dtype)
          .member("weight_format", bench.info.weight_format);
      writer.member("test", result.test).member("tokens", result.tokens);
      writer.member("tokens_per_second", result.tokens_per_s);
      writer.member(flops ? "flops_per_second" : "bytes_per_second", result.work_per_s);
      writer.member(flops ? "roofline_flops_per_second" : "roofline_bytes_per_second",
                    result.roofline_per_s);
      writer.member("fraction", result.fraction);
      if (result.vdpbf16ps_flops_per_s > 0) {
        writer.member("vdpbf16ps_flops_per_second", result.vdpbf16ps_flops_per_s);
        writer.member("vdpbf16ps_fraction", result.vdpbf16ps_fraction);
      }
      writer.end_object();
    }
  }
  writer.end_array().end_object();
  return json + "\n";
}

// Batches of one model, on an engine that this thread steps.
void bench_batches(const Settings& settings, const std::string& shape, Session& session) {
  Settings of_model = settings;
  std::optional<ShapeDirectory> directory;
  if (!shape.empty()) {
    directory.emplace(shape);
    of_model.load.model = directory->path();
    of_model.load.load_format = LoadFormat::dummy;
  }
  const std::filesystem::path path = model_path(of_model);
  const DecoderConfig config = read_model_config(ModelSource(path), of_model.load.load_format);
  // Room for the long prompt, where the model has it.
  constexpr int64_t kContext = 4160;
  if (!of_model.load.max_model_len) {
    of_model.load.max_model_len = std::min(kContext, config.max_position);
  }
  of_model.load.model = path;
  of_model.load.max_queued_tokens = std::numeric_limits<int32_t>::max();  // nobody is refused
  const auto model = load_model(of_model.load);
  const BatchBench bench =
      measure_batches(*model, {.repetitions = settings.repetitions}, [&](const std::string& what) {
        if (!settings.quiet) session.say("measuring " + what);
      });
  const std::string name = shape.empty() ? path.filename().string() : shape;
  if (settings.json) {
    std::string json;
    JsonWriter writer(json);
    writer.begin_object().member("model", name);
    writer.member("instruction_set", isa_name(model->isa));
    writer.member("threads", model->threads->num_threads());
    write_batch_members(bench, writer);
    writer.end_object();
    session.out().write(json + "\n");
  } else {
    session.out().write(fmt::format("{}, {}, {}, {} threads\n\n{}\n", name,
                                    dtype_name(model->weight_dtype), isa_name(model->isa),
                                    model->threads->num_threads(), batch_table(bench)));
  }
  session.out().flush();
}

}  // namespace

int run_bench(const Settings& settings, Session& session) {
  std::vector<std::string> shapes = {settings.shape};
  if (settings.shape.empty() && settings.load.model.empty()) shapes.emplace_back("small");
  std::vector<ModelBench> benches;
  for (const std::string& shape : shapes) {
    if (session.stderr_is_terminal() && !settings.quiet) {
      session.say(fmt::format("measuring {} ...", shape.empty() ? "the model" : shape));
    }
    if (settings.bench_batch) {
      bench_batches(settings, shape, session);
    } else {
      benches.push_back(bench_one(settings, shape, session));
    }
  }
  if (settings.bench_batch) return 0;
  session.out().write(settings.json ? bench_json(benches) : bench_table(benches));
  session.out().flush();
  return 0;
}

}  // namespace paceline
