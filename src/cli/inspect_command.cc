#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/json_writer.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "cli/figures.h"
#include "cli/model_opening.h"
#include "cli/progress.h"
#include "kernels/backend.h"
#include "kernels/cuda/device.h"
#include "load/cache_sizing.h"
#include "load/chosen_types.h"
#include "load/device_choice.h"
#include "load/device_description.h"
#include "load/loaded_model.h"
#include "load/model_source.h"
#include "load/step_defaults.h"
#include "load/stored_model.h"
#include "models/model_costs.h"
#include "runner/model_runner.h"
#include "weights/checkpoint.h"

namespace paceline {
namespace {

struct TensorRow {
  std::string name;
  DType dtype;       // of its numbers
  std::string type;  // as stored
  Extents shape;
  size_t bytes = 0;
  int64_t elements = 1;
};

struct MemoryNeed {
  int64_t context = 0;
  int64_t sequences = 0;
  size_t weights = 0;
  size_t kv_cache = 0;
  size_t activations = 0;
  size_t total() const { return weights + kv_cache + activations; }
};

struct ModelReport {
  std::filesystem::path path;
  DecoderConfig config;
  std::vector<TensorRow> tensors;  // as stored; empty for dummy weights
  std::string quantised_files;     // describe_quantised_files()
  int64_t parameters = 0;
  int64_t active_parameters = 0;  // used by one token
  DType weight_dtype = DType::bf16;
  DType kv_dtype = DType::bf16;
  DType state_dtype = DType::f32;
  MemoryNeed memory;
  DeviceInfo device;
  std::unique_ptr<ModelReport> draft;  // of --speculative-model

  // Of both models.
  size_t total_bytes() const { return memory.total() + (draft ? draft->memory.total() : 0); }
};

std::vector<TensorRow> tensor_rows(const std::vector<CheckpointEntry>& entries) {
  std::vector<TensorRow> rows;
  for (const CheckpointEntry& entry : entries) {
    TensorRow row{.name = entry.name,
                  .dtype = entry.dtype,
                  .type = std::string(dtype_name(entry.dtype)),
                  .shape = entry.shape};
    for (int64_t size : entry.shape) row.elements *= size;
    row.bytes = static_cast<size_t>(row.elements) * dtype_bytes(row.dtype);
    rows.push_back(std::move(row));
  }
  return rows;
}

// With the file's own names and types.
std::vector<TensorRow> tensor_rows(const GgufFile& file) {
  std::vector<TensorRow> rows;
  for (const GgufTensorInfo& tensor : file.tensors()) {
    TensorRow row{.name = tensor.name,
                  .dtype = plain_dtype(tensor.type).value_or(DType::f32),
                  .type = std::string(gguf_type_name(tensor.type)),
                  .shape = tensor.extents,
                  .bytes = tensor.bytes.size()};
    for (int64_t size : tensor.extents) row.elements *= size;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<TensorRow> stored_tensors(const ModelSource& source) {
  if (source.gguf() != nullptr) return tensor_rows(*source.gguf());
  Memory memory;
  return tensor_rows(source.open_weights(memory)->entries());
}

int num_threads(const LoadOptions& options) {
  return options.num_threads > 0 ? options.num_threads : usable_cores();
}

// Elements that attention's last product reads of a row.
int64_t attended_width(const DecoderConfig& config) {
  return config.num_heads * (config.latent ? config.latent->value_dim : config.most_head_dim());
}

MemoryNeed memory_need(const ModelReport& report, const Settings& settings,
                       const cuda::CudaDevice* device) {
  constexpr size_t kNoLimit = size_t{1} << 60;
  const LoadOptions& options = settings.load;
  const int64_t rows = step_tokens(options, device, report.config);
  MemoryNeed need;
  need.context = options.max_model_len.value_or(report.config.max_position);
  need.sequences = settings.max_num_seqs.value_or(1);
  need.weights = static_cast<size_t>(report.parameters) * dtype_bytes(report.weight_dtype);
  need.kv_cache = size_cache(report.config,
                             {.block_size = options.block_size,
                              .max_batched_tokens = rows,
                              .max_num_seqs = need.sequences,
                              .max_model_len = need.context,
                              .memory_bytes = kNoLimit,
                              .dtype = report.kv_dtype,
                              .state_dtype = report.state_dtype},
                             kNoLimit)
                      .bytes;
  const DecoderConfig& config = report.config;
  const int threads = num_threads(options);
  need.activations = runner_activation_bytes(config, {.max_rows = rows}) +
                     cpu_product_bytes(rows, std::max(config.hidden_size, attended_width(config)),
                                       config.most_intermediate_size(), threads);
  if (!config.mixture) return need;
  need.activations += cpu_mixture_bytes(
      rows * config.mixture->routing.num_slots(), config.hidden_size,
      std::max(config.mixture->expert_size, config.mixture->shared_size), threads);
  return need;
}

ModelReport make_report(const Settings& settings, const cuda::CudaDevice* device) {
  ModelReport report;
  check_load_format(settings);
  const ModelSource source(model_path(settings));
  report.path = source.path();
  report.config = read_model_config(source, settings.load.load_format);
  report.weight_dtype = report.config.dtype;
  if (settings.load.load_format == LoadFormat::files) {
    report.tensors = stored_tensors(source);
    report.quantised_files = describe_quantised_files(source);
    const auto read = tensor_rows(read_model_tensors(source));
    const auto largest = std::max_element(
        read.begin(), read.end(),
        [](const TensorRow& a, const TensorRow& b) { return a.elements < b.elements; });
    if (largest != read.end()) report.weight_dtype = largest->dtype;
    for (const TensorRow& row : read) report.parameters += row.elements;
  } else {
    report.parameters = model_costs(report.config).weights();
  }
  report.active_parameters = report.parameters - model_costs(report.config).idle_weights;
  report.weight_dtype = choose_dtype(settings.load.dtype, report.weight_dtype);
  report.kv_dtype = choose_kv_dtype(settings.load.kv_cache_dtype,
                                    report.weight_dtype == DType::f32 ? DType::f32 : DType::bf16);
  report.state_dtype = choose_state_dtype(settings.load.state_dtype);
  report.memory = memory_need(report, settings, device);
  return report;
}

// With the draft model for as many tokens, as far as its context reaches.
ModelReport make_whole_report(const Settings& settings) {
  const int threads = num_threads(settings.load);
  LoadOptions load = settings.load;
  load.model = model_path(settings).string();
  ThreadPool pool(1);
  const DeviceChoice choice = choose_device(load, pool);
  const auto& device = choice.device;
  ModelReport report = make_report(settings, device.get());
  check_context(settings.load, report.config);
  report.device = describe_device(device.get(), choose_isa(), threads);
  report.device.note = choice.note;
  if (settings.load.speculative_model.empty()) return report;
  Settings of_draft = settings;
  of_draft.load.model = std::exchange(of_draft.load.speculative_model, {});
  of_draft.load.dtype = DataType::automatic;
  of_draft.load.max_model_len = report.memory.context;
  report.draft = std::make_unique<ModelReport>(make_report(of_draft, device.get()));
  return report;
}

// The configuration as (name, JSON value).
std::vector<std::pair<std::string_view, std::string>> config_rows(const DecoderConfig& c) {
  static constexpr std::string_view kActivations[] = {"silu",    "gelu_tanh", "gelu",
                                                      "sigmoid", "relu",      "clamped_swiglu"};
  static constexpr std::string_view kScalings[] = {
      "none", "linear", "by_wavelength", "yarn", "by_frequency", "dynamic", "proportional"};
  const auto number = [](auto value) { return fmt::format("{}", value); };
  std::vector<int64_t> windows;
  for (const LayerConfig& layer : c.layers) windows.push_back(layer.window);
  const bool has_window =
      std::any_of(windows.begin(), windows.end(), [](int64_t w) { return w > 0; });
  std::vector<std::string> thetas, scalings;
  for (const RopeConfig& rope : c.ropes) {
    thetas.push_back(number(rope.theta));
    scalings.push_back(json_quote(kScalings[static_cast<size_t>(rope.scaling)]));
  }
  std::vector<std::pair<std::string_view, std::string>> rows = {
      {"family", json_quote(c.family)},
      {"layers", number(c.num_stored_layers())},
      {"hidden_size", number(c.hidden_size)},
      {"intermediate_size", number(c.intermediate_size)},
      {"heads", number(c.num_heads)},
      {"kv_heads", number(c.num_kv_heads)},
      {"head_dim", number(c.head_dim)},
      {"vocab_size", number(c.vocab_size)},
      {"context", number(c.max_position)},
      {"windows", has_window ? fmt::format("[{}]", fmt::join(windows, ",")) : "null"},
      {"activation", json_quote(kActivations[static_cast<size_t>(c.activation)])},
      {"norm_eps", number(c.norm_eps)},
      {"qk_norm", number(c.qk_norm != QkNorm::none)},
      {"qkv_bias", number(c.qkv_bias)},
      {"rope_theta", fmt::format("[{}]", fmt::join(thetas, ","))},
      {"rope_scaling", fmt::format("[{}]", fmt::join(scalings, ","))},
      {"attention_soft_cap", number(c.attention_soft_cap)},
      {"final_soft_cap", number(c.final_soft_cap)},
      {"tied_head", number(c.tied_head)},
      {"dtype", json_quote(dtype_name(c.dtype))}};
  if (!c.mixture) return rows;
  const auto is_mixture = [](const LayerConfig& layer) { return layer.is_mixture; };
  const RoutingParams& routing = c.mixture->routing;
  rows.insert(rows.end(), {{"mixture_layers", number(std::ranges::count_if(c.layers, is_mixture))},
                           {"experts", number(routing.num_experts)},
                           {"experts_per_token", number(routing.experts_per_token)},
                           {"expert_size", number(c.mixture->expert_size)},
                           {"shared_expert_size", number(c.mixture->shared_size)}});
  return rows;
}

std::string report_json(const ModelReport& report) {
  const std::string json = object_json([&](JsonWriter& writer) {
    writer.member("path", report.path.string()).key("config").begin_object();
    for (const auto& [name, value] : config_rows(report.config)) writer.key(name).raw(value);
    writer.end_object().member("parameters", report.parameters);
    if (!report.quantised_files.empty()) writer.member("quantised_files", report.quantised_files);
    writer.member("active_parameters", report.active_parameters).key("tensors").begin_array();
    for (const TensorRow& row : report.tensors) {
      writer.begin_object().member("name", row.name).member("dtype", row.type);
      writer.member("shape", row.shape).member("bytes", row.bytes).end_object();
    }
    const MemoryNeed& memory = report.memory;
    writer.end_array().key("memory").begin_object();
    writer.member("context", memory.context).member("sequences", memory.sequences);
    writer.member("dtype", dtype_name(report.weight_dtype));
    writer.member("kv_cache_dtype", dtype_name(report.kv_dtype));
    if (report.config.has_states()) {
      const StateBytes bytes = state_bytes_of(report.config, report.state_dtype);
      writer.member("state_dtype", dtype_name(report.state_dtype));
      writer.member("state_bytes", bytes.state).member("open_rows_bytes", bytes.open_rows);
    }
    writer.member("weight_bytes", memory.weights).member("kv_cache_bytes", memory.kv_cache);
    writer.member("activation_bytes", memory.activations);
    if (report.draft) {
      const MemoryNeed& of_draft = report.draft->memory;
      writer.key("draft_model").begin_object().member("path", report.draft->path.string());
      writer.member("parameters", report.draft->parameters);
      writer.member("weight_bytes", of_draft.weights).member("kv_cache_bytes", of_draft.kv_cache);
      writer.member("activation_bytes", of_draft.activations).end_object();
    }
    writer.member("total_bytes", report.total_bytes()).end_object();
    const DeviceInfo& device = report.device;
    writer.key("device").begin_object().member("name", device.name);
    writer.member("instruction_set", device.instruction_set).member("threads", device.num_threads);
    writer.member("memory_bytes", device.total_memory_bytes);
    writer.member("free_bytes", device.free_memory_bytes);
    if (!device.note.empty()) writer.member("note", device.note);
    writer.end_object();
  });
  return json + "\n";
}

std::string report_text(const ModelReport& report) {
  std::string text = fmt::format("{}\n\nConfiguration\n", report.path.string());
  for (const auto& [name, value] : config_rows(report.config)) {
    text += fmt::format("  {:<20}{}\n", name, value);
  }
  const auto add_count = [&](std::string_view name, int64_t count) {
    text += fmt::format("  {:<20}{}\n", name, grouped_number(count));
  };
  add_count("parameters", report.parameters);
  if (report.config.mixture) add_count("active_parameters", report.active_parameters);
  if (!report.quantised_files.empty()) {
    text += fmt::format("  {:<20}{}\n", "quantised_files", report.quantised_files);
  }
  text += "\n";
  if (!report.tensors.empty()) text += "Tensors\n";
  size_t width = 0;
  for (const TensorRow& row : report.tensors) width = std::max(width, row.name.size());
  for (const TensorRow& row : report.tensors) {
    text += fmt::format("  {:<{}}  {:<9} {:>16} {:>12}\n", row.name, width, row.type,
                        fmt::format("{}", fmt::join(row.shape, " x ")), bytes_text(row.bytes));
  }
  const MemoryNeed& memory = report.memory;
  text += fmt::format("{}Memory for {} {} of {} tokens\n", report.tensors.empty() ? "" : "\n",
                      memory.sequences, plural_of("sequence", memory.sequences), memory.context);
  text += fmt::format("  {:<20}{:>10}  ({})\n", "weights", bytes_text(memory.weights),
                      dtype_name(report.weight_dtype));
  text += fmt::format("  {:<20}{:>10}  ({})\n",
                      report.config.has_states() ? "keys, values, states" : "keys and values",
                      bytes_text(memory.kv_cache), dtype_name(report.kv_dtype));
  if (report.config.has_states()) {
    const StateBytes bytes = state_bytes_of(report.config, report.state_dtype);
    text += fmt::format("  {:<20}{:>10}  ({}), and {} more while its sequence runs\n",
                        "one state of these", bytes_text(bytes.state),
                        dtype_name(report.state_dtype), bytes_text(bytes.open_rows));
  }
  text += fmt::format("  {:<20}{:>10}\n", "activations", bytes_text(memory.activations));
  if (report.draft) {
    text += fmt::format("  {:<20}{:>10}  ({}, {} parameters)\n", "draft model",
                        bytes_text(report.draft->memory.total()), report.draft->path.string(),
                        grouped_number(report.draft->parameters));
  }
  text += fmt::format("  {:<20}{:>10}\n", "in all", bytes_text(report.total_bytes()));
  const DeviceInfo& device = report.device;
  text += fmt::format("\nDevice\n  {} ({}), {} of memory, {} free\n", device.name,
                      device.instruction_set, bytes_text(device.total_memory_bytes),
                      bytes_text(device.free_memory_bytes));
  return device.note.empty() ? text : text + "  " + device.note + "\n";
}

}  // namespace

int run_inspect(const Settings& settings, Session& session) {
  const ModelReport report = make_whole_report(settings);
  print_unread_weights(settings, session);
  session.out().write(settings.json ? report_json(report) : report_text(report));
  return 0;
}

}  // namespace paceline
