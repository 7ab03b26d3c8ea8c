// What stands behind LLM and GenerationStream.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/engine_thread.h"
#include "engine/trace_writer.h"
#include "llm/completion_builder.h"
#include "load/loaded_model.h"
#include "paceline/llm.h"

namespace paceline {

struct LLM::State {
  std::unique_ptr<LoadedModel> model;
  std::unique_ptr<TraceWriter> trace;    // watches model->engine
  std::unique_ptr<EngineThread> thread;  // steps model->engine
  Metrics metrics;
  std::optional<RequestId> system_prompt;  // holds the preloaded one

  // Keeps the rates of a finished call, and the memory's peak.
  void record(const GenerationStats& stats);
  // Of several that ran together since `begin`: rates are those of all of them.
  void record_together(const GenerationStats& totals, EngineClock::time_point begin);
};

// One generation and the text it has shown so far.
struct GenerationStream::State {
  LLM::State* llm;
  std::shared_ptr<Channel> channel;
  RequestId id;
  CompletionBuilder builder;
  std::vector<TokenEvent> events = {};
  size_t next_event = 0;
  std::string_view piece = {};  // what the iterator shows

  ~State();
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
// Log-probabilities of all of a prompt.
GenerateRequest make_score_request(const LoadedModel& model, const Prompt& prompt,
                                   const ScoreOptions& options);
SamplingOptions make_sampling(const LoadedModel& model, const GenerateOptions& options);

// Who may share the request's prefix: those with the same salt.
PrefixScope prefix_scope(const LoadedModel& model, const GenerateOptions& options);

// A conversation's prompt; sets what a chat leaves open in its options.
std::vector<TokenId> encode_chat(const LoadedModel& model, const ChatInput& input,
                                 GenerateOptions& options);

std::vector<Logprob> describe(const LoadedModel& model, const std::vector<ScoredToken>& tokens);

// The token's text for people and JSON: its bytes with U+FFFD for incomplete characters.
std::string token_string(const LoadedModel& model, TokenId id);

std::vector<TopLogprob> describe_top(const LoadedModel& model,
                                     const std::vector<TokenLogprob>& top);

}  // namespace paceline
