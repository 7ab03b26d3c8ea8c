#include "cli/bench_model.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "cli/model_opening.h"
#include "kernels/cuda/device.h"
#include "load/draft_model.h"
#include "load/model_source.h"
#include "load/weight_info.h"

namespace paceline {
namespace {

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
  const bool is_quantised = format == "q8" || format == "q4";
  options.quantize = is_quantised ? format : "none";
  if (format == "f32") options.dtype = "float32";
  if (format == "f16") options.dtype = "float16";
  if (format == "bf16") options.dtype = "bfloat16";
}

// A model directory with nothing but the config.json of a shape, which is one of --shape's choices.
std::unique_ptr<TemporaryDirectory> make_shape_directory(std::string_view shape) {
  const Shape* found = nullptr;
  for (const Shape& candidate : kShapes) {
    if (candidate.name == shape) found = &candidate;
  }
  PL_CHECK(found != nullptr, "a shape that --shape offers has no config");
  std::string path = (std::filesystem::temp_directory_path() / "paceline-shape-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) {
    throw Error(ErrorCode::invalid, fmt::format("{}: {}", path, std::strerror(errno)));
  }
  auto directory = std::make_unique<TemporaryDirectory>(path);
  std::ofstream file(directory->path() / "config.json");
  file << found->config;
  if (!file.flush()) {
    throw Error(ErrorCode::exhausted, fmt::format("{}: can't be written", path));
  }
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
  if (options.speculative_method == "ngram") drafting.drafter = BenchDrafter::ngram;
  drafting.longest = options.num_speculative_tokens.value_or(drafting.longest);
  return drafting;
}

}  // namespace

BenchModel find_bench_model(const Settings& settings, const BenchVariant& variant) {
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
  fit_to_runs(found.planned.runs, found.options);
  return found;
}

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
            .rows = {},
            .notes = found.planned.notes};
  return model;
}

}  // namespace paceline
