// EngineLink submits requests to the engine and dispatches its events to the pending responses.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/time_source.h"
#include "engine/channel.h"
#include "engine/engine.h"
#include "http/http.h"
#include "protocol/api_error.h"

namespace paceline {

// Identifies one of a response's engine requests.
struct ResponsePart {
  size_t part = 0;   // of the API's request: a prompt
  size_t index = 0;  // of the engine's requests for that prompt
};

// A response that waits for events of the engine. All on the I/O thread.
class PendingResponse {
 public:
  virtual ~PendingResponse() = default;

  // The response's id.
  virtual const std::string& id() const = 0;
  // The index of this part's first choice.
  virtual int64_t first_choice(size_t part) const = 0;
  virtual void take(ResponsePart which, TokenEvent& event) = 0;
  // Called after the last event of a wake-up, to write once.
  virtual void flush() = 0;
  // Called several times a second; an idle stream sends a ping.
  virtual void tick() = 0;
  // Ends it with an error and ignores later events.
  virtual void fail(const ApiError& error) = 0;

  std::chrono::duration<double> age() const { return Clock::now() - since_; }
  bool has_events = false;   // the engine has sent some
  bool has_started = false;  // known to be computed: it no longer waits for its turn

 private:
  std::chrono::steady_clock::time_point since_ = Clock::now();
};

// I/O thread. One wake-up brings the events of all requests of a step.
class EngineLink {
 public:
  // Both must outlive the engine's thread.
  EngineLink(Engine& engine, HttpServer& http);
  // Any thread; no response is pending.
  ~EngineLink();

  // Nothing when the engine's queue is full.
  std::optional<RequestId> submit(const std::shared_ptr<PendingResponse>& response,
                                  ResponsePart which, GenerateRequest request);
  void cancel(RequestId id) { engine_.cancel(id); }
  void release(RequestId id) { engine_.release(id); }
  void defer(RequestId id) { engine_.defer(id); }
  void resume(RequestId id) { engine_.resume(id); }

  struct Target {
    std::shared_ptr<PendingResponse> response;
    ResponsePart which;
    int32_t num_open = 0;  // choices that haven't ended
  };
  // The target of a request's tag; nullptr when the request has ended.
  const Target* find(int64_t tag) const;
  // Every pending response once.
  std::vector<std::shared_ptr<PendingResponse>> responses() const;
  // Keeps a response pending while none of its requests is submitted.
  void keep(const std::shared_ptr<PendingResponse>& response) {
    kept_.emplace(response.get(), response);
  }
  void stop_keeping(const PendingResponse& response) { kept_.erase(&response); }
  // The tags of its requests that have not ended.
  std::vector<int64_t> tags_of(const PendingResponse& response) const;
  // When the events arrived that are being dispatched.
  std::chrono::steady_clock::time_point woken_at() const { return woken_at_; }
  // The I/O thread has more to do than it gets done: these events waited longer than kMostLag.
  bool lags() const { return lags_; }
  static constexpr std::chrono::milliseconds kMostLag{100};
  int64_t num_running() const { return engine_.num_running(); }
  int64_t num_waiting() const { return engine_.num_waiting(); }
  Engine& engine() { return engine_; }

 private:
  // The engine's thread.
  void wake();
  void dispatch();

  Engine& engine_;
  HttpServer& http_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();  // held by the dispatch that runs
  std::atomic<bool> is_awake_ = false;                      // a dispatch is scheduled
  // The first event came that the scheduled dispatch will find.
  std::atomic<std::chrono::steady_clock::time_point> came_at_ = {};
  std::shared_ptr<Channel> channel_;
  std::chrono::steady_clock::time_point woken_at_;
  bool lags_ = false;
  int64_t next_tag_ = 1;
  std::unordered_map<int64_t, Target> targets_;  // by tag
  std::unordered_map<const PendingResponse*, std::shared_ptr<PendingResponse>> kept_;
  std::vector<TokenEvent> events_;
};

}  // namespace paceline
