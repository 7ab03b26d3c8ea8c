// What stands behind LLM and GenerationStream.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/channel.h"
#include "engine/engine.h"
#include "engine/engine_thread.h"
#include "engine/trace_writer.h"
#include "load/loaded_model.h"
#include "paceline/llm.h"
#include "text/completion_builder.h"
#include "text/text_model.h"

namespace paceline {

struct LLM::State {
  std::unique_ptr<LoadedModel> model;
  std::optional<TextModel> text;         // of model
  std::unique_ptr<TraceWriter> trace;    // watches model->engine
  std::unique_ptr<EngineThread> thread;  // steps model->engine
  Metrics metrics;
  std::optional<RequestId> system_prompt;  // holds the preloaded one

  // Takes the model; traces and threads are the caller's to add.
  void open(std::unique_ptr<LoadedModel> loaded);
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

}  // namespace paceline
