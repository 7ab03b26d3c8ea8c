// EngineLink submits requests to the engine and brings its events to the answers they belong to.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/channel.h"
#include "engine/engine.h"
#include "protocol/api_error.h"
#include "server/http.h"

namespace paceline {

// Which of an answer's engine requests an event is of.
struct AnswerPart {
  size_t part = 0;   // of the API's request: a prompt
  size_t index = 0;  // of the engine's requests for that prompt
};

// What the engine works on for a client. All on the I/O thread.
class OpenAnswer {
 public:
  virtual ~OpenAnswer() = default;

  // The id that the client knows it by.
  virtual const std::string& id() const = 0;
  // Of the choices before this part's first.
  virtual int64_t first_choice(size_t part) const = 0;
  virtual void take(AnswerPart which, TokenEvent& event) = 0;
  // Behind all events of a wake-up: what is to be written is written at once.
  virtual void flush() = 0;
  // Now and then: a stream that is silent says so.
  virtual void tick() = 0;
  // Ends it with an error; what the engine still sends is not minded.
  virtual void fail(const ApiError& error) = 0;

  std::chrono::duration<double> age() const { return std::chrono::steady_clock::now() - since_; }
  bool has_events = false;  // the engine has told something of it

 private:
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

// I/O thread. One wake-up brings the events of all requests of a step.
class EngineLink {
 public:
  // Both must outlive the engine's use of this, which ends with its thread.
  EngineLink(Engine& engine, HttpServer& http);

  // Nothing when the engine's queue is full.
  std::optional<RequestId> submit(const std::shared_ptr<OpenAnswer>& answer, AnswerPart which,
                                  GenerateRequest request);
  void cancel(RequestId id) { engine_.cancel(id); }
  void release(RequestId id) { engine_.release(id); }

  struct Target {
    std::shared_ptr<OpenAnswer> answer;
    AnswerPart which;
    int32_t num_open = 0;  // choices that haven't ended
  };
  // Of a request's tag; nullptr when it has ended.
  const Target* find(int64_t tag) const;
  // Every open answer once.
  std::vector<std::shared_ptr<OpenAnswer>> answers() const;
  // It counts as open until it is let go, though none of its requests is with the engine.
  void keep(const std::shared_ptr<OpenAnswer>& answer) { kept_.emplace(answer.get(), answer); }
  void let_go(const OpenAnswer& answer) { kept_.erase(&answer); }
  // Of its requests that haven't ended.
  std::vector<int64_t> tags_of(const OpenAnswer& answer) const;
  // When the events came that answers are being told of.
  std::chrono::steady_clock::time_point woken_at() const { return woken_at_; }
  int64_t num_running() const { return engine_.num_running(); }
  int64_t num_waiting() const { return engine_.num_waiting(); }
  Engine& engine() { return engine_; }

 private:
  void dispatch();

  Engine& engine_;
  HttpServer& http_;
  std::atomic<bool> is_awake_ = false;  // a dispatch is on its way
  std::shared_ptr<Channel> channel_;
  std::chrono::steady_clock::time_point woken_at_;
  int64_t next_tag_ = 1;
  std::unordered_map<int64_t, Target> targets_;  // by tag
  std::unordered_map<const OpenAnswer*, std::shared_ptr<OpenAnswer>> kept_;
  std::vector<TokenEvent> events_;
};

}  // namespace paceline
