#include "cli/bench_driver.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/random.h"

namespace paceline {

double seconds_since(BenchClock::time_point begin) {
  return std::chrono::duration<double>(BenchClock::now() - begin).count();
}

GenerateRequest BenchDriver::request(int64_t prompt_tokens, int64_t output_tokens) {
  std::vector<TokenId> prompt;
  ++next_prompt_;
  for (int64_t i = 0; i < prompt_tokens; ++i) {
    const double draw = uniform_draw(next_prompt_, static_cast<uint64_t>(i));
    prompt.push_back(static_cast<TokenId>(draw * static_cast<double>(engine_.vocab_size())));
  }
  GenerateRequest request{.prompt = std::move(prompt), .max_tokens = output_tokens};
  request.sampling.temperature = 0;
  request.ignore_eos = true;
  request.prefix.read = false;
  return request;
}

RequestId BenchDriver::submit(GenerateRequest request) {
  const auto id = engine_.submit(std::move(request), channel_);
  PL_CHECK(id.has_value(), "a measured engine's queue is full");
  return *id;
}

int64_t BenchDriver::step() {
  engine_.step();
  channel_->poll(events_);
  int64_t num_tokens = 0;
  for (const TokenEvent& event : events_) {
    if (event.token) ++num_tokens;
    if (!event.ending) continue;
    if (const auto& error = event.ending->error) throw Error(error->code, error->message);
    num_cached_tokens_ += event.ending->stats.cached_tokens;
  }
  return num_tokens;
}

bool BenchDriver::has_event(RequestId id) const {
  return std::any_of(events_.begin(), events_.end(),
                     [id](const TokenEvent& event) { return event.request == id; });
}

void BenchDriver::run_out() {
  step();
  while (is_busy()) step();
}

}  // namespace paceline
