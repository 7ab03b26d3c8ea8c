#include "server/time_limits.h"

#include <algorithm>
#include <memory>
#include <unordered_set>
#include <vector>

#include "server/server_errors.h"

namespace paceline {
namespace {

// Whether to find out if it still waits for its turn: to end it, or to let its stream begin.
bool may_wait(const ServerContext& context, const PendingResponse& response) {
  const ServerOptions& options = context.options;
  return !response.has_events && !response.has_started &&
         response.age() > std::min(options.queue_timeout, options.ping_time);
}

// `waiting` are the tags of sequences that nothing has been computed of.
void take_waiting(const ServerContext& context, const EngineLink& link,
                  const std::unordered_set<int64_t>& waiting) {
  for (const auto& response : link.responses()) {
    if (!may_wait(context, *response)) continue;
    const std::vector<int64_t> tags = link.tags_of(*response);
    const bool none_began =
        std::all_of(tags.begin(), tags.end(), [&](int64_t tag) { return waiting.contains(tag); });
    if (!none_began) {
      response->has_started = true;
    } else if (response->age() > context.options.queue_timeout) {
      response->fail({ErrorReason::queue_timeout, "the request waited too long for its turn"});
    }
  }
}

void enforce_limits_of(ServerContext& context, const ModelLease& model) {
  bool somebody_waits = false;
  for (const auto& response : model->link.responses()) {
    if (response->age() > context.options.request_timeout) {
      response->fail(took_too_long());
    } else {
      somebody_waits = somebody_waits || may_wait(context, *response);
    }
  }
  if (!somebody_waits) return;
  // A request without events may be waiting or computing a long prompt: asks the engine which.
  const std::weak_ptr<HostedModel> asked = model->weak_from_this();
  model->link.engine().inspect([&context, asked](const Engine& engine) {
    const std::vector<int64_t> tags = engine.unstarted_tags();
    auto waiting = std::make_shared<std::unordered_set<int64_t>>(tags.begin(), tags.end());
    context.http.post([&context, asked, waiting] {
      if (const auto same = asked.lock()) take_waiting(context, same->link, *waiting);
    });
  });
}

}  // namespace

void enforce_time_limits(ServerContext& context) {
  for (const ModelLease& model : context.host.loaded()) enforce_limits_of(context, model);
}

}  // namespace paceline
