// ChildEngine is an engine whose tokens come from a Python child: docs/backends.md.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "backends/child_sequence.h"
#include "backends/model_child.h"
#include "engine/engine.h"
#include "engine/queue_limit.h"
#include "engine/step_record.h"

namespace paceline {

// Requests are computed in the order of their class and arrival, as many at once as the child says.
// What goes wrong with the child fails the requests that it computes: it is ended, and the next
// request starts another one.
class ChildEngine final : public Engine {
 public:
  struct Options {
    PythonBackendOptions child;
    EngineLimits limits;     // max_num_seqs and what computes nothing here are set by the engine
    int64_t vocab_size = 0;  // of the tokenizer's side
    std::chrono::milliseconds cancel_timeout{10000};  // for the child to end what was cancelled
  };
  // `loaded` has loaded the model. Throws Error exhausted where the system has no descriptor left.
  ChildEngine(Options options, std::unique_ptr<ModelChild> loaded, TokenTexts token_texts);
  ~ChildEngine() override;

  using Engine::submit;
  using Engine::wait_for_mail;
  std::optional<RequestId> submit(GenerateRequest request, std::shared_ptr<Channel> channel,
                                  int64_t tag) override;
  void cancel(RequestId id) override;
  void release(RequestId /*id*/) override {}  // nothing is kept
  void defer(RequestId id) override { change(id, true); }
  void resume(RequestId id) override { change(id, false); }
  void inspect(EngineInspection look) override;
  bool step() override;
  const std::string& lost_device() const override { return no_device_; }
  size_t wait_for_mail(std::chrono::milliseconds timeout, size_t at_least) override;
  void wake() override;
  void end_all() override;
  void check(GenerateRequest& request) const override;
  const EngineLimits& limits() const override { return options_.limits; }
  int64_t vocab_size() const override { return options_.vocab_size; }
  int64_t block_size() const override { return 1; }
  bool keeps_states() const override { return false; }
  std::string_view token_bytes(TokenId id, SpecialTokens specials) const override {
    return shown_bytes(token_texts_, id, specials);
  }
  int64_t num_running() const override { return num_running_.load(std::memory_order_relaxed); }
  int64_t num_waiting() const override { return num_waiting_.load(std::memory_order_relaxed); }
  const QueueLimit& queue() const override { return queue_; }
  EngineSnapshot snapshot() const override;
  std::vector<int64_t> unstarted_tags() const override;
  const EngineCounters& counters() const override { return counters_; }
  void set_observer(StepObserver* observer) override { observer_ = observer; }

 private:
  using SequencePtr = std::unique_ptr<ChildSequence>;

  // A message that the child answers; `sequence` may have ended.
  struct Work {
    SequencePtr sequence;
    bool is_score = false;
    Clock::time_point heard;                      // the last word of it
    std::optional<Clock::time_point> ended = {};  // when the sequence did
  };
  using WorkPlace = std::map<int64_t, Work>::iterator;
  struct Change {
    RequestId id = 0;
    bool defers = false;
  };
  struct Mail {
    std::vector<SequencePtr> submitted;
    std::vector<RequestId> cancelled;
    std::vector<Change> changes;
    std::vector<EngineInspection> inspections;
    size_t num_requests = 0;
    bool was_woken = false;
  };

  void change(RequestId id, bool defers);
  template <class Leave>
  void leave(const Leave& leave);

  // In the order of a step.
  void take_mail();
  void end_cancelled();
  void start_work();
  void listen();
  void end_silent_work();
  void publish();

  bool has_child();
  void ask(SequencePtr sequence, bool scores);
  void take(const Json& answer);
  void take_scores(WorkPlace place, const JsonCursor& answer);
  void cancel_work(int64_t id, Work& work);
  void lose_child(const std::string& message);
  void fail(ChildSequence& sequence, const std::string& message);
  void fail_first(const std::string& message);
  void leave_queue(const ChildSequence& sequence);
  void touch(const ChildSequence& sequence);
  void watch_idle_child(std::chrono::milliseconds timeout);

  Options options_;
  TokenTexts token_texts_;
  const ChildFacts facts_;  // of the first child
  const std::string no_device_;
  QueueLimit queue_;
  int wake_ = -1;  // an eventfd, which mail makes readable

  std::mutex mutex_;
  Mail mail_;
  bool is_closed_ = false;
  std::atomic<RequestId> next_id_ = 1;

  // The engine's thread.
  std::unique_ptr<ModelChild> child_;  // null: the next request starts one
  std::vector<SequencePtr> waiting_;   // in the order in which they are served
  std::map<int64_t, Work> work_;       // by the number of its message
  int64_t next_work_ = 1;
  int64_t num_restarts_ = 0;
  StepRecord record_;  // of this step
  EngineCounters counters_;
  StepObserver* observer_ = nullptr;
  std::set<std::shared_ptr<Channel>> touched_;
  std::atomic<int64_t> num_running_ = 0, num_waiting_ = 0;
};

}  // namespace paceline
