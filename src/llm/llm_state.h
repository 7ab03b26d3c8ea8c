// What stands behind LLM and GenerationStream.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/generation.h"
#include "llm/text_stream.h"
#include "load/loaded_model.h"
#include "paceline/llm.h"

namespace paceline {

struct LLM::State {
  std::unique_ptr<LoadedModel> model;
  Metrics metrics;

  // Keeps the rates of a finished call, and the memory's peak.
  void record(const GenerationStats& stats);
};

// Records the metrics of a call that only prefills, when it ends.
class PrefillTimer {
 public:
  PrefillTimer(LLM::State& state, size_t prompt_tokens)
      : state_(state), prompt_tokens_(static_cast<int64_t>(prompt_tokens)) {}
  ~PrefillTimer();
  PrefillTimer(const PrefillTimer&) = delete;
  PrefillTimer& operator=(const PrefillTimer&) = delete;

 private:
  LLM::State& state_;
  int64_t prompt_tokens_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// One generation and the text it has shown so far.
struct GenerationStream::State {
  LLM::State* llm = nullptr;
  std::unique_ptr<Generation> generation;
  TextStream text;
  std::string piece;  // what the iterator shows
  Completion completion;
  bool finished = false;

  // Runs until there is text to show or the end is reached.
  void advance();
};

// Token ids of a prompt; text is encoded, ids are taken as given.
std::vector<TokenId> encode_prompt(const LoadedModel& model, const Prompt& prompt,
                                   bool add_special_tokens);

// What messages call a prompt: as asked, else by what it holds.
std::string prompt_name(const Prompt& prompt, const std::string& asked);

// The engine's request: options, else generation_config.json, else the defaults.
GenerateRequest make_request(const LoadedModel& model, const Prompt& prompt,
                             const GenerateOptions& options);
SamplingOptions make_sampling(const LoadedModel& model, const GenerateOptions& options);

std::vector<Logprob> describe(const LoadedModel& model, const std::vector<ScoredToken>& tokens);

// The token's text for people and JSON: its bytes with U+FFFD for incomplete characters.
std::string token_string(const LoadedModel& model, TokenId id);

std::vector<TopLogprob> describe_top(const LoadedModel& model,
                                     const std::vector<TokenLogprob>& top);

}  // namespace paceline
