// LLM is a loaded model: generate, classify, score and tokenise with it from one thread at a time.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "paceline/chat_template.h"
#include "paceline/error.h"
#include "paceline/options.h"
#include "paceline/results.h"

namespace paceline {

// A generation in progress: a range of pieces of text as they come, then the whole completion.
//   for (std::string_view piece : llm.generate("Once upon a time")) std::cout << piece <<
//   std::flush;
// Pieces are well-formed UTF-8; together they are the completion's text (empty pieces are skipped).
// A stop string is never shown, not even in part. Errors are thrown from begin() and ++. The LLM
// must outlive it.
class GenerationStream {
 public:
  class Iterator {
   public:
    std::string_view operator*() const;
    Iterator& operator++();
    bool operator==(std::default_sentinel_t) const { return stream_ == nullptr; }

   private:
    friend class GenerationStream;
    explicit Iterator(GenerationStream* stream) : stream_(stream) {}
    GenerationStream* stream_;
  };

  GenerationStream(GenerationStream&&) noexcept;
  GenerationStream& operator=(GenerationStream&&) noexcept;
  ~GenerationStream();

  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

  // Runs to the end first.
  const Completion& completion();

 private:
  friend class LLM;
  struct State;
  explicit GenerationStream(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class RequestPool;

// Every call may throw Error; a failed request leaves the model unchanged.
class LLM {
 public:
  struct State;  // the implementation, not part of the API

  static LLM load(const LoadOptions& options);

  LLM(LLM&&) noexcept;
  LLM& operator=(LLM&&) noexcept;
  ~LLM();

  GenerationStream generate(const Prompt& prompt, const GenerateOptions& options = {});

  // The answer to a conversation, whose history the caller keeps: rendered by the model's chat
  // template and continued until the model ends its turn, by default as far as the context goes.
  // input.special_tokens are the model's when there are none.
  GenerationStream chat(const ChatInput& input, const GenerateOptions& options = {});
  // The prompt that chat() computes.
  std::string render(const ChatInput& input) const;

  // Computes now what every conversation begins with whose system message is `text`, and keeps it
  // until another one comes, close(), or a request that finds no other room: such chats then begin
  // behind it. How many tokens that are; 0 for an empty text, one shorter than a cache block, or
  // without prefix caching. Chats with a cache_salt don't share it. Throws Error when the chat
  // template refuses system messages or leaves them out.
  int64_t preload_system_prompt(std::string_view text, const std::string& kwargs_json = {});

  // Results in input order; an item that fails fails alone.
  struct Request {
    Prompt prompt;
    GenerateOptions options;
  };
  std::vector<ItemResult<Completion>> batch_generate(std::span<const Request> requests);

  // Several choices from one prompt, which is computed once: choice k has the seed + k.
  std::vector<Completion> generate_choices(const Prompt& prompt, const GenerateOptions& options,
                                           int32_t n);

  // Prefill only; nothing stays in the cache. With labels, `scores` are normalised over them: by
  // the logits of one-token labels, else by the labels' summed log-probabilities.
  Classification classify(const Prompt& prompt, const ClassifyOptions& options = {});
  // Many at once, in input order; what all prompts begin with is computed once.
  std::vector<ItemResult<Classification>> classify(std::span<const Prompt> prompts,
                                                   const ClassifyOptions& options = {});

  // Log-probability of each token given those before it (teacher-forced); nothing for the first.
  std::vector<Logprob> score(const Prompt& prompt, const ScoreOptions& options = {});

  // Error not_found when the model's directory has no tokenizer.json.
  std::vector<int32_t> tokenize(std::string_view text, bool add_special_tokens = false,
                                bool specials_as_text = false) const;
  std::string detokenize(std::span<const int32_t> ids, bool skip_special_tokens = false) const;

  // Figures of the last call that computed something.
  Metrics metrics() const;

  MemoryUse memory_use() const;
  void clear_memory_cache();
  void reset_peak_memory();
  // Both return the old limit.
  size_t set_memory_limit(size_t bytes);
  size_t set_cache_limit(size_t bytes);
  // Locks weights and cache into RAM; the bytes locked.
  size_t lock_memory();

  DeviceInfo device_info() const;
  ModelInfo model_info() const;

  // Frees everything at once; may be called twice. Any other call afterwards throws Error invalid.
  // Throws Error exhausted when LoadOptions::trace_file could not be written to its end.
  void close();

 private:
  friend class RequestPool;
  explicit LLM(std::unique_ptr<State> state);
  State& open_state() const;

  std::unique_ptr<State> state_;
};

}  // namespace paceline
