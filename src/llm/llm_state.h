// The implementation of LLM and GenerationStream.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/channel.h"
#include "engine/engine.h"
#include "engine/engine_thread.h"
#include "engine/trace_writer.h"
#include "llm/call_gate.h"
#include "llm/call_metrics.h"
#include "load/loaded_model.h"
#include "paceline/llm.h"
#include "text/completion_builder.h"
#include "text/text_model.h"

namespace paceline {

struct LLM::State {
  // Every call is inside while it uses the members below.
  CallGate gate;
  std::unique_ptr<LoadedModel> model;
  std::optional<TextModel> text;           // of model
  std::unique_ptr<TraceWriter> trace;      // watches model->engine
  std::unique_ptr<EngineThread> thread;    // steps model->engine
  std::mutex system_prompt_mutex;          // held by a whole preload
  std::optional<RequestId> system_prompt;  // holds the preloaded one

  // Takes the model; the caller adds traces and threads.
  void open(std::unique_ptr<LoadedModel> loaded);
  // Ends what runs, waits for the calls inside, and frees everything.
  void close();
  // Throws Error invalid when the model was closed.
  CallGate::Pass enter();
  // Stores the figures of a finished call and the peak of the memory.
  void record(const GenerationStats& stats);
  void record(const CallMetrics& call);
  Metrics metrics() const;

  int64_t max_lora_rank = 0;  // of adapters that come later; 0: there is no room for them

 private:
  mutable std::mutex metrics_mutex_;
  Metrics metrics_;
};

// A call of a model that stays open as long.
class LLM::Call {
 public:
  explicit Call(const LLM& llm);

  State& operator*() const { return *state_; }
  State* operator->() const { return state_.get(); }
  // Throws Error exhausted when too many requests wait.
  GenerationStream begin(GenerateRequest request, CompletionShape shape,
                         std::function<void()> listener) const;

 private:
  std::shared_ptr<State> state_;
  CallGate::Pass pass_;
};

// One generation and its emitted text.
struct GenerationStream::State {
  std::shared_ptr<LLM::State> llm;
  std::shared_ptr<Channel> channel;
  RequestId id;
  CompletionBuilder builder;
  std::vector<TokenEvent> events = {};
  size_t next_event = 0;
  std::string_view piece = {};  // the current one

  ~State();
  // Runs until there is text to emit or the end is reached; or, unless it `waits`, until there is
  // no further event.
  Progress advance(bool waits);
};

}  // namespace paceline
