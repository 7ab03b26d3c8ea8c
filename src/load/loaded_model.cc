#include "load/loaded_model.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <bit>
#include <future>
#include <limits>

#include "backends/backend_registry.h"
#include "base/error.h"
#include "base/system_memory.h"
#include "base/thread_pool.h"
#include "engine/adapter_set.h"
#include "engine/step_engine.h"
#include "kernels/backend.h"
#include "kernels/cuda/make_cuda_backend.h"
#include "load/cache_sizing.h"
#include "load/child_model.h"
#include "load/chosen_types.h"
#include "load/device_choice.h"
#include "load/device_description.h"
#include "load/draft_model.h"
#include "load/embedding_files.h"
#include "load/fingerprint.h"
#include "load/load_adapter.h"
#include "load/load_decoder.h"
#include "load/model_texts.h"
#include "load/open_device.h"
#include "load/score_head.h"
#include "load/step_defaults.h"
#include "load/stored_model.h"
#include "load/weight_stack.h"
#include "models/decoder.h"
#include "models/family.h"
#include "prepared/prepared_file.h"
#include "runner/model_runner.h"
#include "spec/model_drafter.h"
#include "state/state_cache.h"
#include "text/chat_turns.h"
#include "text/constraint_vocabulary.h"
#include "weights/checkpoint.h"
#include "weights/weight_reader.h"

namespace paceline {
namespace {

void check_positive(std::string_view option, int64_t value, int64_t max) {
  if (value < 1 || value > max) {
    throw Error(ErrorCode::invalid, fmt::format("{}: {}, expected 1 to {}", option, value, max));
  }
}

void check_options(const LoadOptions& options) {
  constexpr int64_t kMaxLength = std::numeric_limits<int32_t>::max();
  check_positive("--block-size", options.block_size, 4096);
  if (options.max_num_batched_tokens != 0) {
    check_positive("--max-num-batched-tokens", options.max_num_batched_tokens, 65536);
  }
  check_positive("--max-num-seqs", options.max_num_seqs, 65536);
  check_positive("--max-num-queued-reqs", options.max_queued, 1 << 24);
  check_positive("--batch-size", options.batch_size, 65536);
  check_lora_options(options);
  if (options.max_model_len) check_positive("--max-model-len", *options.max_model_len, kMaxLength);
  if (options.max_kv_size) check_positive("--max-kv-size", *options.max_kv_size, kMaxLength);
  if (options.num_threads < 0 || options.num_threads > 1024) {
    throw Error(ErrorCode::invalid,
                fmt::format("--threads: {}, expected 0 to 1024", options.num_threads));
  }
}

// A cache that no memory of the machine could hold.
void check_cache_memory(const LoadOptions& options, const Machine& machine) {
  if (!options.kv_cache_memory_bytes) return;
  const bool is_gpu = machine.device != nullptr;
  const size_t total =
      is_gpu ? machine.device->info().total_bytes : static_cast<size_t>(system_memory().total);
  if (*options.kv_cache_memory_bytes <= total) return;
  const auto gibibytes = [](size_t bytes) { return static_cast<double>(bytes) / (1 << 30); };
  throw Error(
      ErrorCode::exhausted,
      fmt::format("--kv-cache-memory-bytes: {:.1f} GiB, but the {} has {:.1f} GiB of memory",
                  gibibytes(*options.kv_cache_memory_bytes), is_gpu ? "GPU" : "machine",
                  gibibytes(total)));
}

void check_state_type(const LoadOptions& options, const Machine& machine,
                      const DecoderConfig& config) {
  const DType dtype = choose_state_dtype(options.state_dtype);
  if (!config.has_state_matrices() || !machine.device || dtype == DType::f32) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("--state-dtype {}: kernels for GPUs keep states in float32 alone; use "
                          "--state-dtype float32 or --device cpu",
                          dtype_name(dtype)));
}

// What can be judged before the weights are read.
void check_for_model(const LoadOptions& options, const Machine& machine,
                     const DecoderConfig& config) {
  check_cache_memory(options, machine);
  check_context(options, config);
  if (machine.device) check_gpu_layers(options, std::ssize(config.layers));
  choose_kv_dtype(options.kv_cache_dtype, DType::bf16);
  check_state_type(options, machine, config);
  speculation_limits(options);
  check_lora_files(options);
}

int64_t context_length(const LoadOptions& options, const CacheSize& size) {
  if (options.max_kv_size && !options.max_model_len) return std::numeric_limits<int32_t>::max();
  return size.max_model_len;
}

size_t mapped_bytes(const LoadedModel& model) {
  return model.prepared ? model.prepared->size_bytes() : 0;
}

// A GPU reads the weights of the head for each lot of logits, so it has those of all sequences.
int64_t max_logits_rows(const LoadedModel& model, const LoadOptions& options) {
  const int64_t of_any = RunnerLimits().max_logits_rows;
  constexpr int64_t kOfDevice = 256;
  return model.machine->device ? std::clamp(options.max_num_seqs, of_any, kOfDevice) : of_any;
}

RunnerLimits runner_limits(const LoadedModel& model, const LoadOptions& options) {
  return {.max_rows = options.max_num_batched_tokens,
          .max_logits_rows = max_logits_rows(model, options),
          .adapters = uses_adapters(options) ? AdapterUse::any : AdapterUse::none};
}

RunnerLimits draft_limits(const LoadOptions& options) {
  constexpr int64_t kDraftRows = 256;
  return {.max_rows = std::min(options.max_num_batched_tokens, kDraftRows)};
}

// Of the runners of the model and of the one that drafts for it.
size_t activation_bytes(const LoadedModel& model, const LoadOptions& options) {
  const size_t own =
      runner_activation_bytes(model.decoder->config(), runner_limits(model, options));
  if (model.draft == nullptr) return own;
  return own + runner_activation_bytes(model.draft->decoder->config(), draft_limits(options));
}

// The memory that keys and values of the model and of its draft model may use. On a GPU: what
// weights and activations leave. On the CPU: the free memory, of which the cache takes a part. The
// system counts pages of mapped weights as free; they are subtracted, so that the cache is as large
// as with weights that were read.
size_t memory_for_cache(const LoadedModel& model, const LoadOptions& options) {
  if (model.machine->device) {
    const cuda::CudaDeviceInfo info = model.machine->device->info();
    constexpr double kMostUseful = 31.0 / 32.0;  // the rest is for what kernels use during a call
    const size_t useful = useful_device_bytes(
        info.total_bytes, info.free_bytes, std::min(options.gpu_memory_utilization, kMostUseful));
    return useful - std::min(useful, activation_bytes(model, options));
  }
  const size_t free = static_cast<size_t>(system_memory().free);
  return free - std::min(free, mapped_bytes(model));
}

// The model's part of the memory for keys and values; the rest is the draft model's.
double cache_share(const LoadedModel& model) {
  if (model.draft == nullptr) return 1.0;
  const int64_t length = model.decoder->config().max_position;
  const auto bytes_of = [length](const LoadedModel& one) {
    return static_cast<double>(
        sequence_bytes(one.decoder->config(), length, one.kv_dtype, one.state_dtype));
  };
  return bytes_of(model) / (bytes_of(model) + bytes_of(*model.draft));
}

// The memory of keys and values, and the model's share of it.
struct CacheMemory {
  size_t bytes = 0;
  double share = 1.0;
};

// The dtype of keys and values, the cache and the runner, within the model's share of the memory.
CacheSize build_runner(LoadedModel& model, const LoadOptions& options, const CacheMemory& memory,
                       RunnerLimits limits) {
  const auto part_of = [&memory](size_t bytes) {
    return static_cast<size_t>(memory.share * static_cast<double>(bytes));
  };
  constexpr double kCpuShare = 0.25;
  const double useful_share = model.machine->device ? 1.0 : kCpuShare;
  std::optional<size_t> memory_bytes = options.kv_cache_memory_bytes;
  if (memory_bytes) memory_bytes = part_of(*memory_bytes);
  CacheSize size = size_cache(model.decoder->config(),
                              {.block_size = options.block_size,
                               .max_batched_tokens = options.max_num_batched_tokens,
                               .max_num_seqs = options.max_num_seqs,
                               .max_model_len = options.max_model_len,
                               .memory_bytes = memory_bytes,
                               .useful_share = useful_share,
                               .dtype = model.kv_dtype,
                               .state_dtype = model.state_dtype},
                              part_of(memory.bytes));
  std::vector<int64_t> group_blocks;
  for (const CacheGroup& group : size.groups) group_blocks.push_back(group.num_blocks);
  const auto kv_layers = model.decoder->kv_layers(group_blocks, model.state_dtype);
  model.kv_bytes = size.bytes;
  for (const CacheGroup& group : size.groups) {
    if (group.is_recurrent && !group.holds_open_rows) model.num_states = group.num_blocks;
  }
  model.cache = std::make_unique<StateCache>(options.block_size, size.groups);
  model.runner = std::make_unique<ModelRunner>(
      *model.decoder, *model.backend,
      KvStorage(kv_layers, options.block_size, model.kv_dtype, model.backend->memory()), limits);
  return size;
}

// Attention over blocks of other sizes would be by a GPU's kernel for float32, with other bits.
void check_block_size(const LoadOptions& options, DType kv_dtype) {
  constexpr int64_t kReadBytes = 16;  // at once, of a head's element in a block
  if (kv_dtype != DType::bf16 && kv_dtype != DType::i8) return;
  const int64_t least = kReadBytes / static_cast<int64_t>(dtype_bytes(kv_dtype));
  const auto size = static_cast<uint64_t>(options.block_size);
  if (std::has_single_bit(size) && options.block_size >= least) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("--block-size: {}, but GPUs read keys and values in {} in blocks of a "
                          "power of two of at least {} tokens; give such a size, leave the option "
                          "out, or give --device cpu",
                          options.block_size, dtype_name(kv_dtype), least));
}

void choose_cache_types(LoadedModel& model, const LoadOptions& options) {
  const DecoderConfig& config = model.decoder->config();
  check_state_type(options, *model.machine, config);
  if (config.has_state_matrices()) model.state_dtype = choose_state_dtype(options.state_dtype);
  const bool is_exact = model.weight_dtype == DType::f32 && !model.is_quantised;
  model.kv_dtype = choose_kv_dtype(options.kv_cache_dtype, is_exact ? DType::f32 : DType::bf16);
  if (model.machine->device) check_block_size(options, model.kv_dtype);
}

// The draft model's keys and values are as many as the model's own, and share their memory.
void build_drafter(LoadedModel& model, const LoadOptions& options, const CacheMemory& memory,
                   int64_t max_model_len) {
  if (model.draft == nullptr) {
    model.drafter = make_ngram_drafter(options);
    return;
  }
  LoadedModel& draft = *model.draft;
  LoadOptions draft_options = options;
  const int64_t longest = std::min(max_model_len, draft.decoder->config().max_position);
  draft_options.max_model_len.reset();
  const RunnerLimits limits = draft_limits(options);
  const CacheSize size = build_runner(draft, draft_options, memory, limits);
  model.drafter = std::make_unique<ModelDrafter>(
      *draft.runner, *draft.cache, model.memory,
      ModelDrafterLimits{.vocab_size = model.decoder->config().vocab_size,
                         .max_length = std::min(longest, size.max_model_len),
                         .max_rows = limits.max_rows});
}

void build_engine(LoadedModel& model, const LoadOptions& options) {
  choose_cache_types(model, options);
  if (model.draft) choose_cache_types(*model.draft, options);
  const CacheMemory own{.bytes = memory_for_cache(model, options), .share = cache_share(model)};
  const CacheSize size = build_runner(model, options, own, runner_limits(model, options));
  const int64_t max_model_len = context_length(options, size);
  build_drafter(model, options, {own.bytes, 1.0 - own.share}, max_model_len);
  const StepSlowdown slowdown = step_slowdown(options, model.machine->device.get());
  const EngineLimits limits{.max_model_len = max_model_len,
                            .max_batched_tokens = options.max_num_batched_tokens,
                            .max_chunk = options.max_chunk,
                            .max_num_seqs = options.max_num_seqs,
                            .max_adapters = uses_adapters(options) ? options.max_loras : 0,
                            .max_queued = options.max_queued,
                            .max_queued_tokens = options.max_queued_tokens,
                            .max_tokens_per_sequence = options.max_tokens_per_sequence,
                            .prefix_cache = options.prefix_caching,
                            .bidirectional = model.decoder->config().bidirectional,
                            .tells_types = model.decoder->config().num_token_types > 1,
                            .classifies = model.decoder->config().classifies,
                            .has_head = model.decoder->config().has_head,
                            .max_step_slowdown = slowdown.factor,
                            .free_step_seconds = slowdown.free_seconds,
                            .max_run_steps = options.max_run_steps,
                            .speculation = speculation_limits(options)};
  set_up_turns(model);
  model.engine = std::make_unique<StepEngine>(*model.runner, model.memory, *model.cache, limits,
                                              token_texts_of(model.tokenizer), model.drafter.get());
}

// What follows the decoder where a text is made one vector, packed by `backend`.
void set_up_embeddings(LoadedModel& model, const ModelFiles& files, Backend& backend) {
  if (model.score_head != nullptr) {
    model.runner->set_pooled_head(std::move(model.score_head->head));
    SequenceLabels& labels = model.score_head->labels;
    read_cross_encoder(files, labels);
    if (labels.pooling != Pooling::last && labels.pair_problem.empty()) {
      labels.pair_limit = read_pair_limit(files, files.read_json(kConfig));
    }
    return;
  }
  const Json config_json = files.read_json(kConfig);
  EmbeddingParts parts = read_embedding_parts({.files = files,
                                               .config_json = config_json,
                                               .hidden_size = model.decoder->config().hidden_size,
                                               .has_chat_template = model.has_chat_template},
                                              backend);
  model.embedding = std::move(parts.config);
  model.runner->set_pooled_head(std::move(parts.head));
}

}  // namespace

void check_context(const LoadOptions& options, const DecoderConfig& config) {
  double longest = static_cast<double>(config.max_position);
  for (const RopeConfig& rope : config.ropes) {
    longest = std::max(longest, rope.factor * rope.original_max_position);
  }
  if (options.max_model_len && static_cast<double>(*options.max_model_len) > longest) {
    throw Error(ErrorCode::invalid,
                fmt::format("--max-model-len: {}, the model was made for contexts of up to {}",
                            *options.max_model_len, longest));
  }
}

Machine::Machine() = default;
Machine::~Machine() = default;

std::unique_ptr<Backend> Machine::make_backend(ThreadPool& its_threads) {
  return device ? cuda::make_cuda_backend(*device, its_threads, backend->memory())
                : make_cpu_backend(isa, its_threads, memory);
}

LoadedModel::LoadedModel(std::shared_ptr<Machine> its_machine)
    : machine(std::move(its_machine)),
      memory(machine->memory),
      threads(machine->threads.get()),
      backend(machine->backend.get()),
      isa(machine->isa) {}

LoadedModel::~LoadedModel() = default;

std::shared_ptr<Machine> make_machine(const LoadOptions& options) {
  auto machine = std::make_shared<Machine>();
  machine->threads = std::make_unique<ThreadPool>(
      options.num_threads,
      options.pin_threads ? ThreadPool::Pinning::pinned : ThreadPool::Pinning::none);
  machine->isa = choose_isa();
  DeviceChoice choice = choose_device(options, *machine->threads);
  machine->device = std::move(choice.device);
  machine->device_note = std::move(choice.note);
  machine->backend = machine->device
                         ? cuda::make_cuda_backend(*machine->device, *machine->threads)
                         : make_cpu_backend(machine->isa, *machine->threads, machine->memory);
  Memory& memory = machine->backend->memory();
  if (options.memory_limit_bytes) memory.set_memory_limit(*options.memory_limit_bytes);
  if (options.cache_limit_bytes) memory.set_cache_limit(*options.cache_limit_bytes);
  return machine;
}

namespace {

// Packs weights with threads and scratch of its own, beside models that compute.
struct Packing {
  Packing(Machine& machine, const LoadOptions& options)
      : threads(options.num_threads), backend(machine.make_backend(threads)) {}

  ThreadPool threads;
  std::unique_ptr<Backend> backend;
};

// The error for a model that Paceline can't compute names who may.
void check_supported(const ModelSource& source) {
  try {
    source.check_supported();
  } catch (const Error& error) {
    const std::string hint = source.gguf() == nullptr ? child_backend_hint() : "";
    if (error.code() != ErrorCode::unsupported || hint.empty()) throw;
    throw Error(error.code(), fmt::format("{}; {}", error.what(), hint));
  }
}

void compute_with(LoadedModel& model, ThreadPool& threads, Backend& backend) {
  model.threads = &threads;
  model.backend = &backend;
  if (model.draft) compute_with(*model.draft, threads, backend);
}

}  // namespace

std::unique_ptr<LoadedModel> load_model(const LoadOptions& asked,
                                        std::shared_ptr<Machine> machine) {
  LoadOptions options = with_speculative_config(asked);
  check_options(options);
  if (options.backend != kNativeBackend) return load_child_model(options);
  const ModelSource source = open_model_source(options.model);
  check_supported(source);
  const ModelFiles& files = source.files();
  const bool is_shared = machine != nullptr;
  auto model =
      std::make_unique<LoadedModel>(is_shared ? std::move(machine) : make_machine(options));
  const DecoderConfig config = read_model_config(source, options.load_format);
  check_for_model(options, *model->machine, config);
  options.max_num_batched_tokens = step_tokens(options, model->machine->device.get(), config);
  model->path = source.path();
  // Deferred to get() where the system starts no further thread.
  auto tokenizer = std::async(std::launch::async | std::launch::deferred,
                              [&files] { return load_tokenizer_if_present(files); });
  // With a weights cache the tokenizer takes longest, so it is read beside the weights. Without one
  // it is read first: an error in the small files is then reported before the weights are read.
  model->has_chat_template = carries_chat_template(files);
  model->typed_special_tokens = options.typed_special_tokens;
  const auto read_texts = [&] {
    model->tokenizer = tokenizer.get();
    set_up_texts(*model, files, config.vocab_size, options.chat_template);
  };
  if (options.weights_cache.empty()) read_texts();
  std::optional<Packing> packing;
  if (is_shared) {
    packing.emplace(*model->machine, options);
    compute_with(*model, packing->threads, *packing->backend);
  }
  const size_t bytes_before = model->backend->memory().stats().active_bytes;
  const auto weights = load_decoder(*model, source, options);
  if (tokenizer.valid()) read_texts();
  model->weight_bytes =
      model->backend->memory().stats().active_bytes - bytes_before + mapped_bytes(*model);
  model->memory.clear_cache();
  load_adapters(*model, options);
  model->draft = load_draft_model(*model, options);
  if (is_shared) {
    model->own_backend = model->machine->make_backend(*model->machine->threads);
    compute_with(*model, *model->machine->threads, *model->own_backend);
  }
  model->outline = outline_of(*model->decoder);
  build_engine(*model, options);
  set_up_embeddings(*model, files, packing ? *packing->backend : *model->backend);
  if (options.fingerprint) {
    model->weights_digest = weights;
    model->fingerprint = model_fingerprint(*model, files, options, *weights);
  }
  // The freed documents of a tokenizer have tens of MB, which malloc would keep.
  ::malloc_trim(0);
  if (options.lock_memory) lock_memory(*model);
  return model;
}

size_t lock_memory(LoadedModel& model) {
  size_t mapped_bytes = model.prepared ? model.prepared->lock() : 0;
  if (model.draft && model.draft->prepared) mapped_bytes += model.draft->prepared->lock();
  return mapped_bytes + model.memory.lock_all();
}

DrafterInfo drafter_info(const LoadedModel& model) {
  if (model.drafter == nullptr) return {};
  DrafterInfo info{.name = "ngram", .max_tokens = model.engine->limits().speculation.num_tokens};
  if (model.draft == nullptr) return info;
  info.name = model.draft->path.string();
  info.weight_bytes = model.draft->weight_bytes;
  info.kv_cache_bytes = model.draft->kv_bytes;
  return info;
}

double kv_bytes_per_token(const LoadedModel& model) {
  const DecoderConfig& config = model.decoder->config();
  if (config.has_states()) return static_cast<double>(kv_token_bytes(config, model.kv_dtype));
  const StateCache& cache = *model.cache;
  int64_t blocks = 0;
  for (int g = 0; g < cache.num_groups(); ++g) blocks += cache.pool(g).num_blocks();
  return static_cast<double>(model.kv_bytes) / static_cast<double>(blocks * cache.block_size());
}

namespace {

WeightFacts weight_facts(const LoadedModel& model) {
  const ModelOutline& outline = model.outline;
  const std::string_view plain = model.weight_dtype == DType::f32   ? "F32"
                                 : model.weight_dtype == DType::f16 ? "F16"
                                                                    : "BF16";
  const std::string_view type = model.is_quantised ? "quantized" : plain;
  WeightFacts facts{.family = outline.family,
                    .num_parameters = outline.num_parameters,
                    .num_layers = outline.num_layers,
                    .width = outline.width,
                    .type = model.decoder == nullptr ? std::string() : std::string(type),
                    .num_bytes = model.weight_bytes,
                    .is_on_device = model.machine->device != nullptr};
  if (const auto& digest = model.weights_digest) {
    facts.digest = fmt::format("{:016x}{:016x}", digest->high, digest->low);
  }
  return facts;
}

}  // namespace

TextModel text_model(const LoadedModel& model) {
  size_t longest = 0;
  for (TokenId id = 0; model.tokenizer && id < model.tokenizer->vocab_size(); ++id) {
    longest = std::max(longest, model.tokenizer->token_bytes(id).size());
  }
  const auto& chat_template = model.chat.chat_template;
  return {
      .name = model.path.string(),
      .engine = *model.engine,
      .tokenizer = model.tokenizer ? &*model.tokenizer : nullptr,
      .chat_template = chat_template ? &*chat_template : nullptr,
      .chat_problem = model.chat.problem,
      .typed_specials = model.typed_special_tokens ? TypedSpecials::tokens : TypedSpecials::text,
      .turns = model.turns.get(),
      .constraints = model.constraints.get(),
      .adapters = model.adapters.get(),
      .embedding = model.embedding,
      .labels = model.score_head ? std::optional(model.score_head->labels) : std::nullopt,
      .generation = model.generation,
      .longest_token_bytes = longest,
      .max_position = model.outline.max_position,
      .weights = weight_facts(model),
      .device = model.backend_name == kNativeBackend ? describe_device(*model.machine).name
                                                     : model.backend_name,
      .salt_key = model.salt_key};
}

}  // namespace paceline
