#include "tests/models/test_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/json.h"
#include "base/mapped_file.h"
#include "base/random.h"
#include "kernels/cuda/make_cuda_backend.h"
#include "layers/load_context.h"
#include "models/family.h"
#include "tests/test_directory.h"
#include "weights/expert_checkpoint.h"
#include "weights/forwarding_checkpoint.h"
#include "weights/mxfp4_checkpoint.h"
#include "weights/transposed_checkpoint.h"

namespace paceline::testing {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxRows = 512;

// PACELINE_MODEL_GOLDENS names another folder of goldens (tools/compare_families.py makes them).
fs::path goldens_directory(const std::string& kind) {
  const char* const other = std::getenv("PACELINE_MODEL_GOLDENS");
  if (other != nullptr && kind == "models") return other;
  return fs::path(PACELINE_SOURCE_DIR) / "tests" / "goldens" / kind;
}

std::vector<int32_t> int_list(const Json& json, std::string_view key) {
  std::vector<int32_t> values;
  for (const Json& item : json.find(key)->as_array(key)) {
    values.push_back(static_cast<int32_t>(item.as_int(key)));
  }
  return values;
}

std::vector<std::string> string_list(const Json& json, std::string_view key) {
  std::vector<std::string> values;
  if (json.find(key) == nullptr) return values;
  for (const Json& item : json.find(key)->as_array(key)) values.push_back(item.as_string(key));
  return values;
}

// A checkpoint with some weights hidden, and a random head if the files have none.
class ChangedCheckpoint : public ForwardingCheckpoint {
 public:
  ChangedCheckpoint(Checkpoint& files, const ModelChanges& changes, Memory& memory)
      : ForwardingCheckpoint(files), changes_(changes), memory_(memory) {
    for (const CheckpointEntry& entry : source_.entries()) {
      if (!is_hidden(entry.name)) entries_.push_back(entry);
    }
  }

  const std::vector<CheckpointEntry>& entries() const override { return entries_; }
  bool contains(std::string_view name) const override {
    if (changes_.random_head && name == "lm_head.weight") return true;
    return !is_hidden(name) && source_.contains(name);
  }
  Tensor read_tensor(std::string_view name, const Extents& shape, ReadAs as) override {
    if (!changes_.random_head || name != "lm_head.weight") {
      return source_.read_tensor(name, shape, as);
    }
    head_ = allocate_tensor(memory_, DType::f32, shape);
    auto* elements = head_.view.elements<float>();
    for (int64_t i = 0; i < head_.view.num_elements(); ++i) {
      elements[i] = static_cast<float>(uniform_draw(7, static_cast<uint64_t>(i)) - 0.5);
    }
    return head_.view;
  }

 private:
  bool is_hidden(std::string_view name) const {
    return std::ranges::any_of(changes_.hidden_weights, [&](const std::string& part) {
      return name.find(part) != std::string_view::npos;
    });
  }

  const ModelChanges& changes_;
  Memory& memory_;
  std::vector<CheckpointEntry> entries_;
  OwnedTensor head_;
};

std::unique_ptr<Backend> make_backend(const RunOptions& options, ThreadPool& threads,
                                      Memory& memory, cuda::CudaDevice* device) {
  if (options.backend == BackendKind::reference) return make_reference_backend();
  if (device != nullptr) return cuda::make_cuda_backend(*device, threads);
  return make_cpu_backend(options.isa, threads, memory);
}

}  // namespace

GoldenWeights::GoldenWeights(const fs::path& directory, const Json& config, Memory& memory,
                             ThreadPool& threads)
    : files_(with_usual_matrices(open_checkpoint(directory), memory)) {
  if (has_mxfp4(config, "config.json")) {
    unpacked_ = std::make_unique<Mxfp4Checkpoint>(*files_, memory, threads);
  }
  experts_ = std::make_unique<ExpertCheckpoint>(unpacked_ ? *unpacked_ : *files_, memory, threads);
}

std::vector<std::string> golden_names(const std::string& kind) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(goldens_directory(kind))) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> simple_hybrid_names() {
  std::vector<std::string> names = golden_names("hybrids");
  std::erase_if(names, [](const std::string& name) { return name.starts_with("kimi_linear"); });
  return names;
}

std::string golden_kind(const std::string& name) {
  for (const char* const kind : {"models", "latents", "mixed"}) {
    if (fs::exists(goldens_directory(kind) / name)) return kind;
  }
  return "hybrids";
}

std::vector<std::string> dense_golden_names() {
  std::vector<std::string> names = golden_names();
  std::erase_if(names, [](const std::string& name) {
    const fs::path path = goldens_directory("models") / name / "config.json";
    return read_text_file(path, 1 << 20).find("num_experts") != std::string::npos;
  });
  return names;
}

bool has_untrained_weights(const std::string& golden) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"gpt2_tied", "gpt_bigcode_tied", "gpt_neo_window", "opt_plain", "gptj_parallel",
       "phi_parallel", "cohere_head_norms", "codegen_shards", "biogpt_scaled", "xglm_sinusoids",
       "granite_swa_thetas"});
  return std::ranges::find(kNames, golden) != kNames.end();
}

Golden read_golden(const std::string& name, const std::string& kind) {
  Golden golden;
  golden.directory = goldens_directory(kind) / name;
  const Json json =
      parse_json(read_text_file(golden.directory / "golden.json", 1 << 20), "golden.json");
  golden.prompt_ids = int_list(json, "prompt_ids");
  golden.greedy_ids = int_list(json, "greedy_ids");
  golden.features = string_list(json, "features");
  golden.config_variants = string_list(json, "config_variants");
  // The golden logits are a safetensors file of their own, beside the model's.
  Memory memory;
  const TestDirectory temporary;
  const fs::path& only_golden = temporary.path();
  fs::copy_file(golden.directory / "golden.safetensors", only_golden / "model.safetensors",
                fs::copy_options::overwrite_existing);
  const auto checkpoint = open_checkpoint(only_golden);
  const Extents shape = checkpoint->shape_of("logits").value();
  const Tensor logits = checkpoint->read("logits", shape);
  golden.vocab_size = shape[1];
  golden.logits.assign(logits.elements<float>(), logits.elements<float>() + logits.num_elements());
  return golden;
}

Golden find_golden(const std::string& name) { return read_golden(name, golden_kind(name)); }

TestModel::TestModel(const fs::path& directory, const RunOptions& options,
                     const ModelChanges& changes)
    : options_(options), threads_(options.num_threads) {
  if (options.backend == BackendKind::cuda) {
    device_ = cuda::make_emulated_device(
        {.num_threads = options.num_threads, .guards_memory = true, .begins_kernels_early = true});
  }
  backend_ = make_backend(options, threads_, memory_, device_.get());
  const std::string where = (directory / changes.config_file).string();
  const Json json = parse_json(read_text_file(where, 1 << 20), where);
  const GoldenWeights stored(directory, json, memory_, threads_);
  ChangedCheckpoint checkpoint(stored.top(), changes, memory_);
  WeightReader weights(checkpoint);
  DecoderConfig config = read_decoder_config(json, weights, where);
  if (changes.config) changes.config(config);
  const LoadContext context{.weights = weights,
                            .backend = *backend_,
                            .weight_dtype = options.weight_dtype,
                            .activations = {}};
  decoder_ = std::make_unique<Decoder>(context, std::move(config));

  std::vector<CacheGroup> groups;
  for (const LayerGroup& group : cache_groups(decoder_->config())) {
    groups.push_back({.window = group.window,
                      .num_blocks = options.num_blocks,
                      .is_recurrent = group.is_recurrent,
                      .holds_open_rows = group.holds_open_rows});
  }
  const std::vector<int64_t> group_blocks(groups.size(), options.num_blocks);
  cache_ = std::make_unique<StateCache>(options.block_size, groups);
  kv_ = std::make_unique<KvStorage>(decoder_->kv_layers(group_blocks), options.block_size,
                                    options.kv_dtype, backend_->memory());
  scratch_ = std::make_unique<Scratch>(
      backend_->memory(), forward_scratch_bytes(decoder_->config(), kMaxRows, AdapterUse::any));
}

TestModel::~TestModel() = default;

size_t TestModel::scratch_used() const { return scratch_->most_used_bytes(); }

std::vector<float> TestModel::forward(std::span<const Slice> slices) {
  Batch batch;
  std::vector<const AdapterWeights*> adapters;
  batch.groups.resize(static_cast<size_t>(cache_->num_groups()));
  for (const Slice& slice : slices) {
    const auto count = static_cast<int64_t>(slice.tokens.size());
    cache_->release_outside_window(*slice.blocks, slice.first_position);
    const auto failure =
        cache_->append(*slice.blocks, slice.first_position + count - slice.blocks->length());
    PL_CHECK(!failure, "test model out of blocks");
    const int64_t first_row = batch.num_rows();
    for (int64_t i = 0; i < count; ++i) {
      batch.tokens.push_back(slice.tokens[static_cast<size_t>(i)]);
      batch.positions.push_back(static_cast<int32_t>(slice.first_position + i));
      batch.output_rows.push_back(static_cast<int32_t>(first_row + i));
    }
    if (slice.adapter != nullptr) {
      batch.adapters.push_back({.first_row = first_row,
                                .num_rows = count,
                                .adapter = static_cast<int32_t>(adapters.size())});
      adapters.push_back(slice.adapter);
    }
    if (slice.stretched > 0) batch.stretched.push_back({first_row, count, slice.stretched});
    for (int g = 0; g < cache_->num_groups(); ++g) {
      GroupBatch& group = batch.groups[static_cast<size_t>(g)];
      if (g == cache_->open_group()) continue;
      if (cache_->group(g).is_recurrent) {
        group.states.push_back({.first_row = first_row,
                                .num_rows = count,
                                .first_position = slice.first_position,
                                .block = slice.blocks->table(g).front(),
                                .open_block = slice.blocks->table(g + 1).front()});
        continue;
      }
      for (int64_t i = 0; i < count; ++i) {
        group.slots.push_back(slice.blocks->slot(g, slice.first_position + i));
      }
      group.slices.push_back({.first_row = first_row,
                              .num_rows = count,
                              .first_position = slice.first_position,
                              .block_table = slice.blocks->table(g)});
    }
  }
  Memory& memory = backend_->memory();
  const OwnedTensor hidden =
      allocate_tensor(memory, DType::f32, {batch.num_rows(), decoder_->config().hidden_size});
  const OwnedTensor logits =
      allocate_tensor(memory, DType::f32, {batch.num_rows(), decoder_->config().vocab_size});
  decoder_->forward(*backend_, batch.view(adapters), *kv_, *scratch_,
                    {.out = hidden.view, .finite = {}});
  decoder_->logits(*backend_, hidden.view, logits.view);
  std::vector<float> staging;
  const std::span<const float> all = backend_->read(logits.view, staging);
  return {all.begin(), all.end()};
}

std::vector<float> TestModel::logits(std::span<const int32_t> ids, int64_t chunk,
                                     const AdapterWeights* adapter) {
  SequenceBlocks blocks(*cache_);
  std::vector<float> all;
  const auto length = static_cast<int64_t>(ids.size());
  for (int64_t begin = 0; begin < length; begin += chunk) {
    const int64_t end = std::min(begin + chunk, length);
    const std::vector<Slice> slices = {{.blocks = &blocks,
                                        .tokens = {ids.begin() + begin, ids.begin() + end},
                                        .first_position = begin,
                                        .adapter = adapter,
                                        .stretched = config().stretched_length(length)}};
    const auto part = forward(slices);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::vector<int32_t> TestModel::greedy(std::span<const int32_t> prompt, int64_t count) {
  SequenceBlocks blocks(*cache_);
  std::vector<int32_t> tokens(prompt.begin(), prompt.end());
  std::vector<int32_t> drawn;
  const int64_t stretched = config().stretched_length(std::ssize(prompt) + count);
  int64_t computed = 0;
  while (static_cast<int64_t>(drawn.size()) < count) {
    const std::vector<Slice> slices = {{.blocks = &blocks,
                                        .tokens = {tokens.begin() + computed, tokens.end()},
                                        .first_position = computed,
                                        .stretched = stretched}};
    const auto logits = forward(slices);
    computed = static_cast<int64_t>(tokens.size());
    const auto last = logits.end() - config().vocab_size;
    drawn.push_back(static_cast<int32_t>(std::max_element(last, logits.end()) - last));
    tokens.push_back(drawn.back());
  }
  return drawn;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

float max_difference(std::span<const float> a, std::span<const float> b) {
  PL_CHECK(a.size() == b.size(), "comparing arrays of different sizes");
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const float difference = std::abs(a[i] - b[i]);
    if (!(difference <= largest)) largest = difference;  // NaN counts as large
  }
  return largest;
}

}  // namespace paceline::testing
