#include "cli/bench_model.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "cli/model_opening.h"
#include "load/model_source.h"
#include "load/weight_info.h"

namespace paceline {
namespace {

void apply_format(const std::string& format, LoadOptions& options) {
  if (format.empty()) return;
  const bool is_quantised = format == "q8" || format == "q4";
  options.quantize = is_quantised ? format : "none";
  if (format == "f32") options.dtype = "float32";
  if (format == "f16") options.dtype = "float16";
  if (format == "bf16") options.dtype = "bfloat16";
}

// Of this process, as the system counts; 0 where it doesn't say.
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
  // A longer cache would take memory for nothing.
  if (!options.max_model_len) options.max_model_len = context;
  options.max_num_seqs = sequences;
  // Nobody is refused.
  options.max_queued = 2 * sequences;
  options.max_queued_tokens = std::numeric_limits<int32_t>::max();
}

}  // namespace

BenchModel find_bench_model(const Settings& settings, const BenchVariant& variant) {
  BenchModel found;
  found.options = settings.load;
  found.options.num_threads = static_cast<int>(variant.threads);
  apply_format(variant.format, found.options);
  std::filesystem::path path;
  if (variant.shape.empty()) {
    path = model_path(settings);
    found.name = path.filename().string();
  } else {
    found.directory = std::make_unique<ShapeDirectory>(variant.shape);
    path = found.directory->path();
    found.options.load_format = LoadFormat::dummy;
    found.name = variant.shape;
  }
  found.options.model = path;
  found.config = read_model_config(ModelSource(path), found.options.load_format);
  const int64_t longest = std::min(found.config.max_position,
                                   found.options.max_model_len.value_or(found.config.max_position));
  found.planned = plan_runs(variant.choice, longest);
  fit_to_runs(found.planned.runs, found.options);
  return found;
}

std::unique_ptr<LoadedModel> load_bench_model(const BenchModel& found, BenchReport& report) {
  malloc_trim(0);  // what an earlier model left behind is none of this one's
  const int64_t resident = resident_bytes();
  const auto begin = std::chrono::steady_clock::now();
  auto model = load_model(found.options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const WeightInfo weights = weight_info(*model->decoder);
  report = {.name = found.name,
            .made_up = found.options.load_format == LoadFormat::dummy,
            .dtype = std::string(dtype_name(model->weight_dtype)),
            .weight_format = weights.format,
            .products = products_of(*model),
            .threads = model->threads->num_threads(),
            .load_seconds = took.count(),
            .resident_bytes = resident_bytes() - resident,
            .weight_bytes = model->weight_bytes,
            .decode_bytes = weights.bytes,
            .rows = {},
            .notes = found.planned.notes};
  return model;
}

}  // namespace paceline
