// LLM is a loaded model: generate, classify, score and tokenise with it from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "paceline/chat_template.h"
#include "paceline/decisions.h"
#include "paceline/error.h"
#include "paceline/options.h"
#include "paceline/results.h"

namespace paceline {

// A generation in progress: a range of text pieces as they are generated, then the whole
// completion. One thread at a time, except where it says any.
//   for (std::string_view piece : llm.generate("Once upon a time")) std::cout << piece <<
//   std::flush;
// Pieces are well-formed UTF-8; together they are the completion's text (empty pieces are skipped).
// A stop string is never shown, not even in part. Errors are thrown from begin() and ++; after the
// LLM's end it is that the model was closed. One that is destroyed before its end is cancelled.
class GenerationStream {
 public:
  enum class Progress : uint8_t {
    piece,     // piece() is the next one
    waiting,   // of poll(): there is none yet
    finished,  // completion() returns at once
  };

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

  // The same without iterators: advance() waits for the next piece or the end, poll() doesn't.
  Progress advance();
  Progress poll();
  // Valid until the next call of the stream.
  std::string_view piece() const;

  // Runs to the end, then returns the completion.
  const Completion& completion();

  // Any thread. The generation ends within one step as "cancelled".
  void cancel();

 private:
  friend class LLM;
  struct State;
  explicit GenerationStream(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class RequestPool;

// Any thread may call; requests of all threads are computed together, each with the bits that it
// has alone. Every call may throw Error; a failed request leaves the model unchanged. The LLM
// itself is moved and destroyed by one thread, without calls of others.
class LLM {
 public:
  struct State;  // the implementation, not part of the API

  static LLM load(const LoadOptions& options);

  LLM(LLM&&) noexcept;
  LLM& operator=(LLM&&) noexcept;
  ~LLM();

  // `listener`, if there is one, is called on the engine's thread after each step that has
  // something for the stream, for a reader with a loop of its own: it must neither block nor throw,
  // and the reader calls poll() until there is no more.
  GenerationStream generate(const Prompt& prompt, const GenerateOptions& options = {},
                            std::function<void()> listener = nullptr);

  // Answers a conversation, whose history the caller keeps: renders it with the model's chat
  // template and generates until the model ends its turn, by default up to the end of the context.
  // Empty input.special_tokens mean the model's. Where the template writes reasoning, or calls of
  // the input's tools, the completion's `turn` has the parts, calls obey their schemas,
  // options.constraint is that of the content, and the pieces are the text as the model writes it,
  // marks included. Where the template writes no calls, the prompt tells how to make them.
  GenerationStream chat(const ChatInput& input, const GenerateOptions& options = {},
                        const ChatOptions& chat_options = {},
                        std::function<void()> listener = nullptr);
  // The prompt of chat().
  std::string render(const ChatInput& input) const;

  // Computes the common prefix of all conversations with the system message `text`, and keeps it in
  // the cache until the next call, close(), or a request that needs its blocks. Returns its number
  // of tokens; 0 for an empty text, one shorter than a cache block, or without prefix caching.
  // Chats with a cache_salt or another adapter than `lora` don't share it. Throws Error when the
  // chat template refuses or omits system messages.
  int64_t preload_system_prompt(std::string_view text, const std::string& kwargs_json = {},
                                const std::string& lora = {});

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
  // Many at once, in input order; a common prefix of all prompts is computed once.
  std::vector<ItemResult<Classification>> classify(std::span<const Prompt> prompts,
                                                   const ClassifyOptions& options = {});

  // Answers 1 to 400 questions about an input. The input is computed once for all of them and stays
  // in the prefix cache; a question is a prompt of its own after it, so its answer has the same
  // bits beside any others. Throws Error invalid naming the question at fault.
  Decisions decide(const std::string& input, std::span<const DecisionQuestion> questions,
                   const DecideOptions& options = {});
  // The same questions about many inputs, in their order; an item that fails fails alone.
  std::vector<ItemResult<Decisions>> decide(std::span<const std::string> inputs,
                                            std::span<const DecisionQuestion> questions,
                                            const DecideOptions& options = {});

  // The text as one vector: its pooled states, passed through what the model's
  // sentence-transformers files list; without such files the last token's state, normalised.
  Embedding embed(const Prompt& prompt, const EmbedOptions& options = {});
  // Many at once, in input order; an item that fails fails alone.
  std::vector<ItemResult<Embedding>> embed(std::span<const Prompt> prompts,
                                           const EmbedOptions& options = {});

  // How well the second text of each pair answers the first: by the model's head for one label, by
  // the cosine of their embeddings, or by the probability of "yes" as Qwen3-Reranker does. Each
  // different text is computed once; one that fails fails all. Throws Error unsupported when the
  // model does none of these.
  PairScores score_pairs(std::span<const TextPair> pairs, const PairOptions& options = {});

  // Log-probability of each token given those before it (teacher-forced); nothing for the first.
  std::vector<Logprob> score(const Prompt& prompt, const ScoreOptions& options = {});

  // Error not_found when the model's directory has no tokenizer.json.
  std::vector<int32_t> tokenize(std::string_view text, bool add_special_tokens = false,
                                bool specials_as_text = false) const;
  std::string detokenize(std::span<const int32_t> ids, bool skip_special_tokens = false) const;

  // Adapters that come and go while the model runs, for requests that name them; a model loaded
  // with LoadOptions::enable_lora, or with some adapters, has room for them. Loading replaces one
  // of the same name; one that is unloaded lives on until its last request has ended. Throws Error
  // not_found for one that isn't there, unsupported without room.
  void load_lora(const LoraSource& source);
  void unload_lora(std::string_view name);
  std::vector<std::string> loras() const;

  // Metrics of the last call to end that computed something.
  Metrics metrics() const;

  MemoryUse memory_use() const;
  void clear_memory_cache();
  void reset_peak_memory();
  // Both return the old limit.
  size_t set_memory_limit(size_t bytes);
  size_t set_cache_limit(size_t bytes);
  // Locks weights and cache into RAM and returns their bytes.
  size_t lock_memory();

  // Names of what may compute a model in this build, for LoadOptions::backend: native first.
  static std::vector<std::string> backends();

  DeviceInfo device_info() const;
  // Of what would compute with these options, before a model is loaded.
  static DeviceInfo device_info(const LoadOptions& options);
  ModelInfo model_info() const;

  // Ends what runs as cancelled, waits for the calls of other threads, and frees everything; may be
  // called twice, and not by a listener. Any other call afterwards throws Error invalid. Throws
  // Error exhausted when LoadOptions::trace_file could not be written to its end.
  void close();

 private:
  friend class RequestPool;
  class Call;
  explicit LLM(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
};

}  // namespace paceline
