// Options of loading a model and of requests; every field has a working default.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "paceline/constraint_spec.h"

namespace paceline {

enum class LoadFormat : uint8_t {
  files,  // the directory's safetensors, or the GGUF file
  dummy,  // seeded random weights from config.json alone
};

// Types of numbers. Each option's comment names those that it takes.
enum class DataType : uint8_t { automatic, float32, float16, bfloat16, int8 };

// How plain weights are quantised while they are loaded.
enum class LoadQuantization : uint8_t {
  none,
  q4,  // 4 bits, affine, as mlx.core.quantize does
  q8,  // 8 bits, symmetric
};

// The inputs of products with quantised weights.
enum class Activations : uint8_t {
  automatic,  // int8
  int8,       // one scale per 32 to 256 inputs
  bfloat16,
  plain,  // weights are dequantised to LoadOptions::dtype when they are loaded
};

// What proposes tokens for speculative decoding.
enum class DraftMethod : uint8_t {
  automatic,  // model if there is a LoadOptions::speculative_model, else none
  model,      // LoadOptions::speculative_model
  ngram,      // what followed the longest suffix of prompt and output that occurred before
};

// Which drafted tokens stand.
enum class SpecAccept : uint8_t {
  coupled,    // those that the model itself draws: an output's bits are those of plain decoding
  rejection,  // speculative sampling, which keeps the distribution only
};

// A LoRA adapter's files: a directory as PEFT or mlx-lm writes it, or a GGUF file.
struct LoraSource {
  std::string name = {};  // as requests call it
  std::string path = {};
  double scale = 1;  // times the adapter's own
};

constexpr double kSmoothSteps = -1;  // of LoadOptions::max_step_slowdown

struct LoadOptions {
  std::string model = {};  // a directory, a GGUF file, or org/name in the local Hugging Face cache
  LoadFormat load_format = LoadFormat::files;
  // For chats: a file, the name of one of the model's templates, or chatml, gemma, llama3; empty:
  // the model's own.
  std::string chat_template = {};
  // Special tokens written in the content of messages of users and tools become tokens, as in
  // transformers; false: they are text.
  bool typed_special_tokens = false;
  // Of the weights: automatic (as stored), float32, float16, bfloat16.
  DataType dtype = DataType::automatic;
  LoadQuantization quantize = LoadQuantization::none;
  Activations activations = Activations::automatic;
  // A directory for packed weights, which the next load of the same files with the same settings
  // maps; created if missing. Empty: no cache.
  std::string weights_cache = {};
  // Of stored keys and values: automatic (float32 for plain float32 models, else bfloat16),
  // float32, float16, bfloat16, or int8: 8 bits an element and a float32 scale for each token and
  // head.
  DataType kv_cache_dtype = DataType::automatic;
  // Of the matrices that layers with states keep of a sequence: automatic (float32), float32, or
  // bfloat16, to which a state is rounded every 16 tokens. The CPU's alone.
  DataType state_dtype = DataType::automatic;
  std::optional<int64_t> max_model_len =
      {};  // context in tokens; default: the model's, if the cache holds it
  std::optional<int64_t> max_kv_size =
      {};                   // gives every layer a rotating window of this many tokens
  int64_t block_size = 16;  // token slots per cache block
  // Rows of one forward. 0: the device's own, 512 of a CPU; of a GPU 8192, or half as many, and so
  // on, until the activations take at most a sixteenth of its memory.
  int64_t max_num_batched_tokens = 0;
  int64_t max_run_steps = 64;           // of decoding on a GPU without a plan in between; 1: none
  int64_t max_chunk = 0;                // rows of one sequence in a step; 0: max_num_batched_tokens
  int64_t max_num_seqs = 256;           // sequences computed at once
  int64_t max_queued = 1024;            // requests that wait for their turn
  int64_t max_queued_tokens = 0;        // of their prompts; 0: four times what the cache holds
  int64_t max_tokens_per_sequence = 0;  // share of the cache; 0: all of it
  // The factor by which prefill may slow down a step of decoding sequences; 0: unlimited, which is
  // best for throughput; kSmoothSteps: 2.5, but on a GPU a step of up to 25 ms is never too slow.
  double max_step_slowdown = 0;
  bool prefix_caching = true;  // common prefixes are computed once
  DraftMethod speculative_method = DraftMethod::automatic;
  std::string speculative_model = {};  // as `model`; it has the same tokenizer
  std::optional<int64_t> num_speculative_tokens =
      {};  // drafted in a step, at most: 1 to 64; default 8
  // Drafts fewer, down to none, where they would cost more time than they save.
  bool adaptive_drafts = true;
  int64_t prompt_lookup_min = 2;  // tokens of the suffix
  int64_t prompt_lookup_max = 5;
  SpecAccept spec_accept = SpecAccept::coupled;
  // The same settings as vLLM's JSON object, which goes before the members above: {"method":
  // "ngram", "num_speculative_tokens": 4}; empty: none.
  std::string speculative_config = {};
  // LoRA adapters, which requests choose by name (GenerateOptions::lora); any number of them in one
  // batch.
  std::vector<LoraSource> loras = {};
  bool enable_lora = false;      // room for adapters that come later
  int64_t max_loras = 8;         // different ones computed at once, 1 to 65536
  int64_t max_lora_rank = 1024;  // of each
  std::string trace_file = {};   // records every step for `paceline trace`; empty: none
  int64_t batch_timeout_ms = 0;  // when idle, wait up to this for batch_size requests
  int64_t batch_size = 1;
  // Default: enough for max_num_seqs sequences of the whole context, at most a quarter of free
  // memory.
  std::optional<size_t> kv_cache_memory_bytes = {};
  // What computes: auto (the first GPU, if there is one and the model fits it, else the CPU), cpu,
  // cuda (the first GPU) or cuda:N.
  std::string device = "auto";
  // Layers that a GPU computes: all of the model's or more, or 0, which is the CPU. Other numbers,
  // and any but 0 without a GPU, are an error.
  std::optional<int64_t> gpu_layers = {};
  double gpu_memory_utilization = 0.9;  // share of a GPU's memory to use, above 0 to 1
  // Who computes: native, or, for models that Paceline itself refuses, a Python child with
  // transformers or mlx_lm (LLM::backends()).
  std::string backend = "native";
  std::string python = "python3";   // of an environment with that package
  int64_t backend_timeout_s = 600;  // of loading there, and between two tokens
  int num_threads = 0;              // 0: one per usable core
  bool pin_threads = false;         // pins each thread except the caller's to a core of its own
  bool lock_memory = false;         // mlock weights and cache
  std::optional<size_t> memory_limit_bytes = {};
  std::optional<size_t> cache_limit_bytes = {};
  uint64_t seed = 0;         // of dummy weights
  bool fingerprint = false;  // digest the weights while they are loaded, about 2 GB/s a core
  // Called by the loading thread before each tensor is read, first when the configuration has been
  // read; `total` is 0 for dummy weights. Not called for weights that a cache maps.
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> progress = {};
};

// Text, or token ids that are used as they are.
using Prompt = std::variant<std::string, std::vector<int32_t>>;

// Unset fields take the model's generation_config.json, else the value in the comment.
struct GenerateOptions {
  std::optional<int64_t> max_tokens = {};        // 256
  std::optional<float> temperature = {};         // 1; 0 is greedy
  std::optional<float> top_p = {};               // 1
  std::optional<int32_t> top_k = {};             // 0, off
  std::optional<float> min_p = {};               // 0, off
  std::optional<float> typical_p = {};           // 1, off
  std::optional<float> top_n_sigma = {};         // 0, off
  std::optional<float> repetition_penalty = {};  // 1
  float frequency_penalty = 0;
  float presence_penalty = 0;
  std::vector<std::pair<int32_t, float>> logit_bias = {};  // -inf: never
  std::vector<int32_t> allowed_token_ids = {};             // only these are drawn; none: any
  // No token is drawn that completes one of them, as encoded alone or after a space; at most 128 of
  // at most 256 bytes.
  std::vector<std::string> bad_words = {};
  std::optional<ConstraintSpec> constraint = {};  // what the text must be; none: anything
  std::string constraint_name = {};               // in messages; empty: constraint
  bool mlx_sampler_order = false;      // top-p, min-p, top-k, temperature instead of the default
  std::optional<uint64_t> seed = {};   // random; the result has it
  std::vector<std::string> stop = {};  // at most 128 strings of at most 256 bytes
  std::vector<int32_t> stop_token_ids = {};  // at most 128
  bool include_stop_in_output = false;       // the text ends after the stop string, not before it
  bool ignore_eos = false;
  bool skip_special_tokens = true;  // false: the text includes them
  // Until then neither the end of sequence nor stop_token_ids are drawn; 0.
  std::optional<int64_t> min_tokens = {};
  std::optional<int64_t> truncate_prompt_tokens =
      {};                                // keeps only this many last tokens of the prompt
  std::optional<int32_t> logprobs = {};  // top alternatives reported beside each token, 0 to 20
  std::vector<int32_t> logprob_token_ids = {};  // reported with logprobs instead of the likeliest
  bool prompt_logprobs = false;
  bool add_special_tokens = true;  // to a text prompt, as the post-processor says
  std::string lora = {};           // the name of an adapter, LoadOptions::loras; empty: none
  std::string cache_salt = {};     // shares cached prefixes only with requests of the same salt
  int32_t priority = 0;            // smaller is served first
  std::string prompt_name = {};    // in messages; empty: prompt, or prompt_ids when it is token ids
  bool speculation = true;         // false: nothing is drafted for it
  std::string prediction = {};     // a text that the output will mostly repeat: tokens to draft
  std::stop_token cancelled = {};  // takes effect within one step
};

// Whether an answer calls tools.
enum class ToolChoice : uint8_t {
  none,       // no calls are read
  automatic,  // content, calls, or both
  required,   // calls
  named,      // one call, of ChatOptions::tool_name
};

// What a chat asks of the turn, beside the options of its text.
struct ChatOptions {
  ToolChoice tool_choice = ToolChoice::automatic;  // of ChatInput::tools_json
  std::string tool_name = {};
  bool parallel_tool_calls = true;
  // none, low, medium, high, ...: sets the template's own variable where it has one.
  std::optional<std::string> reasoning_effort = {};
};

struct ClassifyOptions {
  // They continue the prompt, without special tokens. A label that would run into the last word of
  // a text prompt gets a space in front: "It was" and "good".
  std::vector<std::string> labels = {};
  bool want_token_id = true;  // with labels: false skips the head's other columns
  bool with_logits = false;
  GenerateOptions sampling = {};  // how the token is drawn
};

struct EmbedOptions {
  // Elements of the embedding, for models that are trained for several sizes; default: the
  // model's.
  std::optional<int64_t> dimensions = {};
  // The name of one of the model's prompts (config_sentence_transformers.json), which stands in
  // front of a text; default: the model's default_prompt_name, if it has one.
  std::optional<std::string> named_prompt = {};
  bool add_special_tokens = true;  // to a text, as the post-processor says
  // Whether a text that is too long for the model or the context is cut, else it is an error;
  // default: as the model's files say, an error where they don't.
  std::optional<bool> truncates = {};
  std::string lora = {};           // as GenerateOptions::lora
  std::string cache_salt = {};     // as GenerateOptions::cache_salt
  int32_t priority = 0;            // smaller is served first
  std::string prompt_name = {};    // in messages; empty: prompt, or prompt_ids when it is token ids
  std::stop_token cancelled = {};  // takes effect within one step: Error cancelled
};

// A query and a document.
struct TextPair {
  std::string first = {};
  std::string second = {};
  std::string name = "second";  // of the second text, in messages
};

struct PairOptions {
  // What makes a document relevant, for models like Qwen3-Reranker; default: its own.
  std::optional<std::string> instruction = {};
  // Embeds first texts with the prompt "query" and second ones with "document", where the model has
  // them.
  bool uses_prompts = false;
  std::string lora = {};           // as GenerateOptions::lora
  std::string cache_salt = {};     // as GenerateOptions::cache_salt
  int32_t priority = 0;            // smaller is served first
  std::stop_token cancelled = {};  // takes effect within one step: Error cancelled
};

struct ScoreOptions {
  int32_t num_top_logprobs = 0;    // alternatives reported beside each token, 0 to 20
  bool add_special_tokens = true;  // to a text prompt, as the post-processor says
  std::string lora = {};           // as GenerateOptions::lora
  std::string prompt_name = {};    // in messages; empty: prompt, or prompt_ids when it is token ids
  std::stop_token cancelled = {};  // takes effect within one step: Error cancelled
};

}  // namespace paceline
