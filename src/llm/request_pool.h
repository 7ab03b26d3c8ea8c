// RequestPool runs many requests on one LLM at once; results come as they finish.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "paceline/llm.h"

namespace paceline {

// One thread, that of the LLM, which must outlive it. Requests that are still in flight when it
// goes are cancelled.
class RequestPool {
 public:
  struct State;  // what stands behind it

  explicit RequestPool(LLM& llm);
  // Of a model whose engine has no thread: who steps it calls next() when the step loop is over.
  explicit RequestPool(LLM::State& llm);
  ~RequestPool();
  RequestPool(const RequestPool&) = delete;
  RequestPool& operator=(const RequestPool&) = delete;

  // Each throws Error invalid at once for a request that can never run; `tag` comes back with the
  // result. Choice k of a request with seed s has the seed s + k.
  void generate(int64_t tag, const Prompt& prompt, const GenerateOptions& options, int32_t n = 1);
  void chat(int64_t tag, const ChatInput& input, const GenerateOptions& options, int32_t n = 1);
  void classify(int64_t tag, const Prompt& prompt, const ClassifyOptions& options);
  void score(int64_t tag, const Prompt& prompt, const ScoreOptions& options);

  struct Done {
    int64_t tag = 0;
    std::variant<std::vector<Completion>, Classification, ErrorInfo, std::vector<Logprob>> result;
  };
  // The next request that ended, waiting for it; nothing when none is in flight.
  std::optional<Done> next();
  int64_t in_flight() const;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace paceline
