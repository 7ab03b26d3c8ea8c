#include "traffic/load_client/load.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "traffic/token_script.h"

namespace paceline::traffic {
namespace {

void print_line(const char* line) {
  std::puts(line);
  std::fflush(stdout);
}

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

// Sends one GET /live, then only waits.
class Load::IdleConnection : public AnswerSink {
 public:
  explicit IdleConnection(Load& load) : load_(load), connection_(load.poller_, load.plan_.port) {
    connection_.send("GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n", *this);
  }
  bool is_idle() const { return connection_.is_idle(); }

  void on_body(int, std::string_view) override {}
  void on_end(int) override { load_.idle_answered(seconds_between(began_, Clock::now())); }
  void on_failure(const std::string&) override { load_.idle_answered(0); }

 private:
  Load& load_;
  Clock::time_point began_ = Clock::now();
  Connection connection_;
};

Load::Load(const LoadPlan& plan) : plan_(plan), grid_(plan.rate), pool_(poller_, plan.port) {}

Load::~Load() = default;

Clock::time_point Load::after(double seconds) const {
  return start_ + std::chrono::nanoseconds(static_cast<int64_t>(1e9 * seconds));
}

void Load::run() {
  start_ = Clock::now();
  schedule_streams();
  schedule_request();
  schedule_idle();
  const double last_request = static_cast<double>(plan_.requests) / plan_.request_rate;
  const double longest =
      static_cast<double>(std::max(plan_.stream_tokens, plan_.request_tokens)) / plan_.rate;
  const double end = std::max({plan_.stream_seconds + plan_.stream_spread, last_request,
                               plan_.idle_spread + plan_.idle_seconds}) +
                     longest + plan_.grace;
  while (!is_over() && Clock::now() < after(end)) poller_.poll(std::chrono::milliseconds(100));
  seconds_ = seconds_between(start_, Clock::now());
  count_unfinished();
}

bool Load::is_over() const {
  return num_slots_over_ == plan_.streams && requests_.answered() == plan_.requests &&
         (plan_.idle == 0 || idle_is_over_);
}

void Load::count_unfinished() {
  for (Tally* tally : {&streams_, &requests_}) {
    const int64_t missing = tally->sent - tally->answered();
    if (missing > 0) tally->errors["no end in time"] += missing;
  }
  if (requests_.sent < plan_.requests) {
    requests_.errors["never sent"] += plan_.requests - requests_.sent;
  }
}

Completion& Load::begin(const CompletionRequestText& request, Clock::time_point due, Tally& tally,
                        std::function<void()> on_over) {
  Connection& connection = pool_.take();
  auto owned = std::make_unique<Completion>(request, due, grid_, tally);
  Completion& completion = *owned;
  completion.set_on_over([this, &connection, &completion, on_over = std::move(on_over)] {
    poller_.defer([this, &connection, &completion, on_over] {
      pool_.give_back(connection);
      open_.erase(&completion);
      on_over();
    });
  });
  open_.emplace(&completion, std::move(owned));
  connection.send(completion.text(), completion);
  return completion;
}

CompletionRequestText Load::next_request(int64_t max_tokens) {
  CompletionRequestText request{.prompt = {},
                                .max_tokens = max_tokens,
                                .is_streamed = true,
                                .is_scripted = !plan_.any_tokens};
  const int64_t number = plan_.first_prompt + num_prompts_++;
  const int64_t cycle = number / kNumTokens;  // the squares alone repeat after kNumTokens
  for (int64_t i = 0; i < plan_.prompt_tokens; ++i) {
    const int64_t sum = number * (i * i + 1) + cycle * i * i * i + i;
    request.prompt.push_back(kFirstToken + static_cast<int32_t>(sum % kNumTokens));
  }
  return request;
}

void Load::schedule_streams() {
  for (int64_t i = 0; i < plan_.streams; ++i) {
    const auto due =
        after(plan_.stream_spread * static_cast<double>(i) / static_cast<double>(plan_.streams));
    poller_.at(due, [this, due] { run_slot(due); });
  }
}

void Load::run_slot(Clock::time_point due) {
  const bool is_first = streams_.sent < plan_.streams;
  Completion& completion = begin(next_request(plan_.stream_tokens), due, streams_, [this] {
    const auto now = Clock::now();
    if (now < after(plan_.stream_seconds)) {
      run_slot(now);
    } else {
      ++num_slots_over_;
    }
  });
  if (!is_first) return;
  completion.set_on_begun([this] {
    if (++num_slots_begun_ == plan_.streams) print_line("streams open");
  });
}

// Arms one timer, for the next due request.
void Load::schedule_request() {
  if (requests_.sent >= plan_.requests) return;
  const auto due = after(static_cast<double>(requests_.sent) / plan_.request_rate);
  poller_.at(due, [this] { send_due_requests(); });
}

void Load::send_due_requests() {
  const auto now = Clock::now();
  while (requests_.sent < plan_.requests) {
    const auto due = after(static_cast<double>(requests_.sent) / plan_.request_rate);
    if (due > now) break;
    CompletionRequestText request = next_request(plan_.request_tokens);
    request.is_streamed = plan_.streams_requests;
    begin(request, due, requests_,
          [this] { request_seconds_ = seconds_between(start_, Clock::now()); });
  }
  schedule_request();
}

void Load::schedule_idle() {
  for (int64_t i = 0; i < plan_.idle; ++i) {
    poller_.at(after(plan_.idle_spread * static_cast<double>(i) / static_cast<double>(plan_.idle)),
               [this] { idle_.push_back(std::make_unique<IdleConnection>(*this)); });
  }
}

void Load::idle_answered(double seconds) {
  idle_times_.add(seconds);
  if (idle_times_.count() < plan_.idle) return;
  print_line("idle open");
  poller_.at(
      Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(1e3 * plan_.idle_seconds)),
      [this] { idle_is_over_ = true; });
}

int64_t Load::num_lost_idle() const {
  return plan_.idle - std::count_if(idle_.begin(), idle_.end(),
                                    [](const auto& connection) { return connection->is_idle(); });
}

}  // namespace paceline::traffic
