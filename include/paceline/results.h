// Results of the library's calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "paceline/error.h"

namespace paceline {

struct TopLogprob {
  int32_t id = 0;
  std::string token;  // the token's text; empty without a tokenizer
  float logprob = 0;
};

struct Logprob {
  int32_t id = 0;
  std::string token;
  std::optional<float> logprob;  // nullopt for the first token of a prompt
  std::vector<TopLogprob> top;   // by (probability down, id up)
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;  // all drawn tokens, an EOS included
  int64_t cached_tokens = 0;      // of the prompt, found in the prefix cache
  int64_t drafted_tokens = 0;     // proposed by speculative decoding and checked
  int64_t accepted_tokens = 0;    // of these, drawn
  int64_t reasoning_tokens = 0;   // of the completion
};

// Times of one choice; those of the prompt are from the choice that computed it.
struct Timings {
  double queue_seconds = 0;                // until its first step
  double prompt_seconds = 0;               // from then to the first token
  double output_seconds = 0;               // from the first token to the last
  double time_to_first_token_seconds = 0;  // from submission
};

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON of an object; cut off where the completion is
};

// An assistant's turn, taken apart.
struct TurnParts {
  std::string reasoning;
  std::string content;
  std::vector<ToolCall> tool_calls;
  bool must_call = false;  // a call was asked for: without one the turn was cut short before it
};

struct Completion {
  std::optional<std::string> text;  // nullopt without a tokenizer
  std::vector<int32_t> token_ids;   // without the EOS
  std::string finish_reason;        // "stop", "length" or "cancelled"
  std::optional<std::variant<int32_t, std::string>>
      stop_reason;                       // the stop token or string that ended it
  std::vector<Logprob> logprobs;         // one per token id, when asked for
  std::vector<Logprob> prompt_logprobs;  // when asked for
  Usage usage;
  Timings timings;
  std::optional<TurnParts> turn;  // of chats whose template writes reasoning or tool calls
  // What was asked for and not done, in sentences: parts of a schema that can't be enforced.
  std::vector<std::string> warnings;
  uint64_t seed = 0;   // the one used
  double logprob = 0;  // of all tokens drawn, an EOS included, summed; when asked for
};

struct ErrorInfo {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  std::string field = {};  // the path of the request's field at fault; empty: none
};

// One item of a batch: a value or an error.
template <class T>
using ItemResult = std::variant<T, ErrorInfo>;

struct Classification {
  std::optional<int32_t> token_id;  // drawn with the sampling options
  std::string token;
  std::optional<std::string> label;  // the best one
  std::vector<float> scores;         // probabilities over the labels, in their order; sum 1
  std::vector<float> logits;         // [vocab], when asked for
  // The model's own, where its head classifies (...ForSequenceClassification): then there is no
  // token, `logits` are the labels', and scores of one label, or of several that may be right
  // together, are sigmoids.
  std::vector<std::string> labels;
};

struct Embedding {
  std::vector<float> values;
  Usage usage;
};

struct PairScores {
  std::vector<float> values;  // in the order of the pairs
  Usage usage;
};

struct Metrics {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t cached_tokens = 0;    // of the prompts, found in the prefix cache
  int64_t preemptions = 0;      // times that a sequence lost its blocks and was resumed
  int64_t drafted_tokens = 0;   // proposed by speculative decoding and checked
  int64_t accepted_tokens = 0;  // of these, drawn
  double prefill_tokens_per_second = 0;
  double decode_tokens_per_second = 0;
  double time_to_first_token_seconds = 0;
  size_t peak_memory_bytes = 0;
};

struct MemoryUse {
  size_t active_bytes = 0;
  size_t peak_bytes = 0;
  size_t cached_bytes = 0;
};

struct DeviceInfo {
  std::string name;             // of the processor or the GPU
  std::string instruction_set;  // what the kernels use: "avx512bf16", "sm_90"
  int num_threads = 0;
  size_t total_memory_bytes = 0;
  size_t free_memory_bytes = 0;
  // What LoadOptions::device "auto" did with a GPU that is there; empty without one.
  std::string note = {};
};

// The outcome of LoadOptions::weights_cache.
struct WeightsCacheUse {
  enum class Outcome : uint8_t {
    off,      // not requested, or dummy weights, which aren't cached
    reused,   // the weights are mapped from `file`
    written,  // they were read from the model's files and written to `file`
    failed,   // they were read from the model's files, but not cached
  };
  Outcome outcome = Outcome::off;
  std::string file;     // of the prepared weights
  size_t bytes = 0;     // of the file
  std::string problem;  // a failure and its consequence; empty: none
};

// What drafts for a model in speculative decoding.
struct DrafterInfo {
  std::string name;           // the draft model's path, or ngram; empty: nothing drafts
  int64_t max_tokens = 0;     // in a step
  size_t weight_bytes = 0;    // of a draft model, as packed
  size_t kv_cache_bytes = 0;  // reserved for its keys and values
};

struct ModelInfo {
  std::string path;
  std::string backend;  // who computes it: native, or another of LLM::backends()
  std::string family;   // model_type
  int64_t num_layers = 0;
  int64_t vocab_size = 0;
  int64_t max_model_len = 0;
  int64_t full_context =
      0;  // the context that the model was trained for; max_model_len may be less
  int64_t num_parameters = 0;
  size_t weight_bytes = 0;    // as packed
  size_t kv_cache_bytes = 0;  // reserved for keys and values, and for states
  // Sequences whose states there is room for, running or cached, if layers have states.
  int64_t num_states = 0;
  std::string dtype;  // of plain weights
  // The format of packed matrices: bfloat16, q4x64 (4 bits in groups of 64), or several.
  std::string weight_format;
  // What becomes of matrices that another tool has quantised; empty: there are none.
  std::string quantised_files;
  size_t decode_bytes = 0;        // weights read for one decoded token
  bool integer_products = false;  // of quantised weights with inputs of 8 bits
  std::string kv_cache_dtype;
  std::string state_dtype;  // where layers have states
  bool has_tokenizer = false;
  bool has_chat_template = false;             // of its own
  std::string chat_template;                  // the source of the one in use; empty: none
  std::vector<std::string> notes;             // warnings about the model's chats, in sentences
  std::vector<std::string> generation_notes;  // and about what its files say of generating
  WeightsCacheUse weights_cache;
  DrafterInfo drafter;
};

}  // namespace paceline
