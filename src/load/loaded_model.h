// LoadedModel owns a model's parts, from its files to the engine that runs it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "load/chat_setup.h"
#include "load/model_outline.h"
#include "load/model_source.h"
#include "paceline/options.h"
#include "paceline/results.h"
#include "paceline/tokenizer.h"
#include "tensor/dtype.h"
#include "tensor/memory.h"
#include "text/embedding_config.h"
#include "text/text_model.h"
#include "weights/checkpoint.h"

namespace paceline {

namespace cuda {
class CudaDevice;
}

class AdapterSet;
class Backend;
class ChatTurns;
class ConstraintCache;
class Decoder;
class Drafter;
struct DecoderConfig;
class Engine;
enum class Isa : uint8_t;
class StateCache;
class ModelRunner;
class PreparedFile;
struct ScoreHead;
class ThreadPool;

// What computes. A model and the one that drafts for it share it, and so may models whose engines
// take turns.
struct Machine {
  Machine();
  ~Machine();

  Memory memory;  // of the CPU
  std::unique_ptr<ThreadPool> threads;
  std::unique_ptr<cuda::CudaDevice> device;  // null: the CPU computes
  std::string device_note;                   // DeviceChoice
  std::unique_ptr<Backend> backend;
  Isa isa{};  // the baseline

  // A further backend on the same device, in the same memory.
  std::unique_ptr<Backend> make_backend(ThreadPool& its_threads);
};

// Each member depends only on earlier ones.
struct LoadedModel {
  explicit LoadedModel(std::shared_ptr<Machine> its_machine);
  ~LoadedModel();

  std::shared_ptr<Machine> machine;
  Memory& memory;  // the machine's, as the next three by default
  ThreadPool* threads;
  Backend* backend;
  Isa isa;
  std::unique_ptr<Backend> own_backend;  // where it shares the machine with other models
  std::filesystem::path path;            // the directory, or the GGUF file
  ModelOutline outline;
  // Another one's engine comes without decoder, cache and runner.
  std::string backend_name = "native";
  std::optional<Tokenizer> tokenizer;  // nothing when the model has none
  GenerationConfig generation;
  bool has_chat_template = false;     // of its own
  bool typed_special_tokens = false;  // LoadOptions
  ChatSetup chat;
  std::unique_ptr<ChatTurns> turns;        // null: no chat template, or no tokenizer
  std::unique_ptr<PreparedFile> prepared;  // maps the decoder's weights; or null
  WeightsCacheUse weights_cache;
  std::unique_ptr<Decoder> decoder;  // null: another backend computes
  DType weight_dtype = DType::f32;   // of plain weights
  bool is_quantised = false;         // some weights are quantised
  std::string quantised_files;       // QuantisedCheckpoint::description(), or empty
  DType kv_dtype = DType::f32;
  DType state_dtype = DType::f32;  // of layers with states
  size_t weight_bytes = 0;
  size_t kv_bytes = 0;
  int64_t num_states = 0;  // of sequences, that the cache has room for; 0 where layers have none
  std::unique_ptr<AdapterSet> adapters;  // of LoadOptions::loras
  std::unique_ptr<StateCache> cache;
  std::unique_ptr<ModelRunner> runner;
  std::unique_ptr<LoadedModel> draft;  // of --speculative-model; it has no engine and no tokenizer
  std::unique_ptr<Drafter> drafter;
  std::unique_ptr<ConstraintCache> constraints;  // null: there is no tokenizer
  std::unique_ptr<Engine> engine;
  std::optional<EmbeddingConfig> embedding;  // nothing: it makes none
  std::unique_ptr<ScoreHead> score_head;     // null: it has none
  std::string fingerprint;                   // with LoadOptions::fingerprint; see fingerprint.h
  std::optional<Hash128> weights_digest;     // of the stored bytes; with LoadOptions::fingerprint
  SipKey salt_key = random_sip_key();        // of cache salts
};

// Locks weights and cache into RAM and returns their bytes. Throws Error exhausted when the system
// refuses.
size_t lock_memory(LoadedModel& model);

// Throws Error invalid where --max-model-len is beyond the positions that the model was made for,
// scaled ropes included.
void check_context(const LoadOptions& options, const DecoderConfig& config);

std::shared_ptr<Machine> make_machine(const LoadOptions& options);

// Throws Error naming the file and the field or tensor at fault. A `machine` that is given may be
// computing for other models meanwhile; without one the model has its own.
std::unique_ptr<LoadedModel> load_model(const LoadOptions& options,
                                        std::shared_ptr<Machine> machine = nullptr);

// What drafts for the model; requests with a prediction have drafts without it.
DrafterInfo drafter_info(const LoadedModel& model);

// Bytes of keys and values per token of the cache.
double kv_bytes_per_token(const LoadedModel& model);

// Refers to the engine, the tokenizer and the chat template of `model`, which must outlive it.
TextModel text_model(const LoadedModel& model);

}  // namespace paceline
