#include "engine/run_alone.h"

#include "base/error.h"
#include "engine/channel.h"
#include "engine/engine.h"

namespace paceline {

void throw_if_failed(const Ending& ending) {
  if (ending.error) throw Error(ending.error->code, ending.error->message);
}

std::vector<TokenEvent> run_alone(Engine& engine, GenerateRequest request) {
  int64_t num_open = request.n;
  const auto channel = std::make_shared<Channel>();
  if (!engine.submit(std::move(request), channel)) {
    throw Error(ErrorCode::exhausted, "the engine's queue is full");
  }
  std::vector<TokenEvent> events, came;
  while (num_open > 0) {
    engine.step();
    channel->poll(came);
    for (TokenEvent& event : came) {
      num_open -= event.ending ? 1 : 0;
      events.push_back(std::move(event));
    }
  }
  for (const TokenEvent& event : events) {
    if (!event.ending) continue;
    throw_if_failed(*event.ending);
    if (event.ending->finish.reason == FinishReason::cancelled) {
      throw Error(ErrorCode::cancelled, "cancelled by the caller");
    }
  }
  return events;
}

}  // namespace paceline
