// Generation is one running request, pulled token by token.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/request.h"
#include "engine/sequence.h"
#include "engine/stop_matcher.h"
#include "sampling/sampler.h"

namespace paceline {

class Engine;

// Made by Engine::start; the engine must outlive it.
class Generation {
 public:
  // The next token, and the finish with or after the last one. Throws Error numerical when a row
  // can't be drawn from, exhausted when the cache is full; the generation is over then.
  TokenEvent next();
  bool finished() const { return finished_; }

  const GenerateRequest& request() const { return request_; }
  const GenerationStats& stats() const { return stats_; }
  // When the request asked for them, complete after the first next().
  const std::vector<ScoredToken>& prompt_logprobs() const { return prompt_logprobs_; }

 private:
  friend class Engine;
  Generation(Engine& engine, GenerateRequest request);

  TokenEvent finish_with(FinishReason reason, std::optional<TokenId> stop_token = {});
  void prefill();
  void accept(TokenId id, TokenEvent& event);

  Engine& engine_;
  GenerateRequest request_;
  StopAutomaton stop_automaton_;
  StopMatcher stop_matcher_;
  Sequence sequence_;
  TokenHistory history_;
  GenerationStats stats_;
  std::vector<ScoredToken> prompt_logprobs_;
  int64_t text_bytes_ = 0;
  bool prefilled_ = false;
  bool finished_ = false;
};

}  // namespace paceline
