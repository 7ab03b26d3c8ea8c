// The implementation of LLM and GenerationStream.
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
#include "llm/call_metrics.h"
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

  // Takes the model; the caller adds traces and threads.
  void open(std::unique_ptr<LoadedModel> loaded);
  // Throws Error exhausted when too many requests wait.
  GenerationStream begin(GenerateRequest request, CompletionShape shape);
  // Stores the figures of a finished call and the peak of the memory.
  void record(const GenerationStats& stats);
  void record(const CallMetrics& call);
};

// One generation and its emitted text.
struct GenerationStream::State {
  LLM::State* llm;
  std::shared_ptr<Channel> channel;
  RequestId id;
  CompletionBuilder builder;
  std::vector<TokenEvent> events = {};
  size_t next_event = 0;
  std::string_view piece = {};  // the iterator's current piece

  ~State();
  // Runs until there is text to emit or the end is reached.
  void advance();
};

}  // namespace paceline
