// Completion is one request to the completions API: it checks the answer and measures its times.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traffic/load_client/completion_text.h"
#include "traffic/load_client/connection.h"
#include "traffic/load_client/event_reader.h"
#include "traffic/load_client/tally.h"
#include "traffic/load_client/token_check.h"
#include "traffic/tick_grid.h"

namespace paceline::traffic {

class Completion : public AnswerSink {
 public:
  // `due`: when it should be sent; latency counts from then.
  Completion(CompletionRequestText request, Clock::time_point due, const TickGrid& grid,
             Tally& tally);

  // Set callbacks for its end, and for its first token; each is called once.
  void set_on_over(std::function<void()> on_over) { on_over_ = std::move(on_over); }
  void set_on_begun(std::function<void()> on_begun) { on_begun_ = std::move(on_begun); }

  std::string text() const { return completion_request(request_); }
  bool has_begun() const { return check_.count() > 0; }

  void on_body(int status, std::string_view piece) override;
  void on_end(int status) override;
  void on_failure(const std::string& reason) override;

 private:
  void take_json(std::string_view json, Clock::time_point now);
  void take_event(std::string_view data, Clock::time_point now);
  std::string find_fault() const;
  void count_whole();
  void count_latencies();
  double since_due() const;

  CompletionRequestText request_;
  Clock::time_point due_;
  const TickGrid& grid_;
  Tally& tally_;
  std::function<void()> on_over_;
  std::function<void()> on_begun_;
  TokenCheck check_;
  EventReader events_;
  std::string body_;  // of an answer that isn't a stream
  std::string error_;
  std::string finish_reason_;
  int64_t usage_tokens_ = -1;
  bool is_done_ = false;                     // [DONE] was received
  std::vector<Clock::time_point> arrivals_;  // by token
};

}  // namespace paceline::traffic
