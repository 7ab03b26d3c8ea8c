// TestModel loads a golden checkpoint onto a backend and runs it over prompts, whole or in pieces.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/thread_pool.h"
#include "kernels/backend.h"
#include "kernels/cuda/device.h"
#include "models/decoder.h"
#include "state/state_cache.h"
#include "weights/checkpoint.h"

namespace paceline::testing {

// Every golden folder under tests/goldens/KIND: models, or hybrids, whose layers have states.
std::vector<std::string> golden_names(const std::string& kind = "models");
// Hybrids that are trained and that GPUs run: without latent attention.
std::vector<std::string> simple_hybrid_names();
// The folder of that golden's kind: models, latents (latent attention), mixed (layers that differ)
// or hybrids (with states).
std::string golden_kind(const std::string& name);
std::vector<std::string> dense_golden_names();  // without mixtures of experts
// Whether the model has weights without gradients: learned positions, a bias of the head, or norms
// of all heads in one tensor, or sinks. It is trained with LoRA alone.
bool has_untrained_weights(const std::string& golden);

// The files of a golden, with experts one by one.
class GoldenWeights {
 public:
  GoldenWeights(const std::filesystem::path& directory, const Json& config, Memory& memory,
                ThreadPool& threads);
  Checkpoint& top() const { return *experts_; }

 private:
  std::unique_ptr<Checkpoint> files_, unpacked_, experts_;
};

struct Golden {
  std::filesystem::path directory;
  std::vector<int32_t> prompt_ids;
  std::vector<int32_t> greedy_ids;
  std::vector<std::string> features;
  std::vector<std::string> config_variants;
  std::vector<float> logits;  // [prompt, vocab]
  int64_t vocab_size = 0;
};

Golden read_golden(const std::string& name, const std::string& kind = "models");
// Of whichever kind has this name.
Golden find_golden(const std::string& name);

// A test's changes to the files' weights.
struct ModelChanges {
  std::string config_file = "config.json";
  std::function<void(DecoderConfig&)> config;
  // Parts of names of weights to hide, or to replace by noise.
  std::vector<std::string> hidden_weights;
  bool random_head = false;
};

// cuda is the emulation, whose memory only the backend may touch.
enum class BackendKind { reference, cpu, cuda };

struct RunOptions {
  BackendKind backend = BackendKind::cpu;
  Isa isa = Isa::baseline;
  int num_threads = 1;
  DType weight_dtype = DType::f32;
  DType kv_dtype = DType::f32;
  int64_t block_size = 16;
  int64_t num_blocks = 64;
};

class TestModel {
 public:
  TestModel(const std::filesystem::path& directory, const RunOptions& options,
            const ModelChanges& changes = {});
  ~TestModel();

  const DecoderConfig& config() const { return decoder_->config(); }
  Backend& backend() { return *backend_; }
  StateCache& cache() { return *cache_; }
  const Decoder& decoder() const { return *decoder_; }
  Decoder& decoder() { return *decoder_; }
  ThreadPool& threads() { return threads_; }

  // One forward over slices of several sequences; logits of every row [rows, vocab].
  struct Slice {
    SequenceBlocks* blocks;
    std::vector<int32_t> tokens;
    int64_t first_position;
    const AdapterWeights* adapter = nullptr;
    int64_t stretched = 0;  // DecoderConfig::stretched_length
  };
  std::vector<float> forward(std::span<const Slice> slices);
  // The most scratch that a forward took.
  size_t scratch_used() const;

  // Logits of every position of `ids`, computed alone in chunks of `chunk`; their ropes are those
  // of a sequence of that length.
  std::vector<float> logits(std::span<const int32_t> ids, int64_t chunk = 1 << 20,
                            const AdapterWeights* adapter = nullptr);

  // The argmax continuation, one token at a time.
  std::vector<int32_t> greedy(std::span<const int32_t> prompt, int64_t count);

 private:
  RunOptions options_;
  Memory memory_;
  ThreadPool threads_;
  std::unique_ptr<cuda::CudaDevice> device_;  // of a CUDA backend
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<StateCache> cache_;
  std::unique_ptr<KvStorage> kv_;
  std::unique_ptr<Scratch> scratch_;
};

bool same_bits(std::span<const float> a, std::span<const float> b);
float max_difference(std::span<const float> a, std::span<const float> b);

}  // namespace paceline::testing
