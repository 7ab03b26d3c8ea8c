// Load carries out a plan: concurrent streams, requests of an open loop, idle connections.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "traffic/load_client/completion.h"
#include "traffic/load_client/connection_pool.h"
#include "traffic/load_client/load_plan.h"
#include "traffic/load_client/poller.h"
#include "traffic/load_client/tally.h"

namespace paceline::traffic {

class Load {
 public:
  explicit Load(const LoadPlan& plan);
  ~Load();

  // Runs to the end. Prints "streams open" when all streams have begun, and "idle open" when all
  // idle connections are open.
  void run();

  const Tally& streams() const { return streams_; }
  const Tally& requests() const { return requests_; }
  double request_seconds() const { return request_seconds_; }  // first due time to last answer
  int64_t num_connections() const { return pool_.num_made(); }
  const Samples& connect_times() const { return pool_.connect_times(); }
  const Samples& idle_times() const { return idle_times_; }  // connect() to the answer's end
  int64_t num_lost_idle() const;                             // closed early
  double seconds() const { return seconds_; }

 private:
  class IdleConnection;

  // Sends one, and calls `on_over` after its end.
  Completion& begin(const CompletionRequestText& request, Clock::time_point due, Tally& tally,
                    std::function<void()> on_over);
  CompletionRequestText next_request(int64_t max_tokens);
  void schedule_streams();
  void run_slot(Clock::time_point due);
  void schedule_request();
  void send_due_requests();
  void schedule_idle();
  void idle_answered(double seconds);
  bool is_over() const;
  void count_unfinished();
  Clock::time_point after(double seconds) const;

  const LoadPlan plan_;
  TickGrid grid_;
  Poller poller_;
  ConnectionPool pool_;
  Clock::time_point start_;
  double seconds_ = 0;
  int64_t num_prompts_ = 0;
  std::unordered_map<const Completion*, std::unique_ptr<Completion>> open_;

  Tally streams_;
  int64_t num_slots_begun_ = 0;
  int64_t num_slots_over_ = 0;
  Tally requests_;
  double request_seconds_ = 0;
  std::vector<std::unique_ptr<IdleConnection>> idle_;
  Samples idle_times_;
  bool idle_is_over_ = false;
};

}  // namespace paceline::traffic
