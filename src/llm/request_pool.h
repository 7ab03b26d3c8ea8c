// RequestPool runs many requests on one LLM at once; results come as they finish.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "paceline/llm.h"
#include "text/chat_turn.h"

namespace paceline {

// Single-threaded, on the LLM's thread; the LLM must outlive it. The destructor cancels requests
// in flight.
class RequestPool {
 public:
  struct State;  // the implementation

  explicit RequestPool(LLM& llm);
  // For a model whose engine has no thread: the caller steps it, then calls next().
  explicit RequestPool(LLM::State& llm);
  ~RequestPool();
  RequestPool(const RequestPool&) = delete;
  RequestPool& operator=(const RequestPool&) = delete;

  // Each throws Error invalid at once for a request that can never run; `tag` comes back with the
  // result. Choice k of a request with seed s has the seed s + k.
  void generate(int64_t tag, const Prompt& prompt, const GenerateOptions& options, int32_t n = 1);
  void chat(int64_t tag, const ChatInput& input, const GenerateOptions& options, int32_t n = 1,
            const TurnRequest& asked = {});
  void classify(int64_t tag, const Prompt& prompt, const ClassifyOptions& options);
  void score(int64_t tag, const Prompt& prompt, const ScoreOptions& options);
  void embed(int64_t tag, const Prompt& prompt, const EmbedOptions& options);
  void decide(int64_t tag, const std::string& input, std::span<const DecisionQuestion> questions,
              const DecideOptions& options);
  void score_pairs(int64_t tag, std::span<const TextPair> pairs, const PairOptions& options);

  struct Done {
    int64_t tag = 0;
    std::variant<std::vector<Completion>, Classification, ErrorInfo, std::vector<Logprob>,
                 Embedding, PairScores, Decisions>
        result;
    Metrics metrics = {};  // of this request alone
  };
  // Waits for the next request to end; nullopt when none is in flight.
  std::optional<Done> next();
  int64_t in_flight() const;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace paceline
