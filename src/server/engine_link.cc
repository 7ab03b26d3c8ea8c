#include "server/engine_link.h"

#include <exception>
#include <thread>
#include <unordered_set>
#include <utility>

#include "base/time_source.h"

namespace paceline {
namespace {

// An exception (out of memory, as a rule) fails one response and no other.
template <class Work>
void protect(PendingResponse& response, const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    response.fail({ErrorReason::internal_error, error.what()});
  }
}

}  // namespace

EngineLink::EngineLink(Engine& engine, HttpServer& http)
    : engine_(engine),
      http_(http),
      channel_(std::make_shared<Channel>([this, alive = std::weak_ptr<char>(alive_)] {
        // An engine that ends after it has nobody to tell.
        if (const auto held = alive.lock()) wake();
      })) {}

EngineLink::~EngineLink() {
  const std::weak_ptr<char> dispatching = alive_;
  alive_ = nullptr;
  while (!dispatching.expired()) std::this_thread::yield();
}

void EngineLink::wake() {
  if (is_awake_.exchange(true)) return;
  came_at_.store(Clock::now());
  http_.post([this, alive = std::weak_ptr<char>(alive_)] {
    if (const auto held = alive.lock()) dispatch();
  });
}

std::optional<RequestId> EngineLink::submit(const std::shared_ptr<PendingResponse>& response,
                                            ResponsePart which, GenerateRequest request) {
  const int64_t tag = next_tag_++;
  const int32_t num_choices = request.n;
  const auto id = engine_.submit(std::move(request), channel_, tag);
  if (id) targets_.emplace(tag, Target{response, which, num_choices});
  return id;
}

const EngineLink::Target* EngineLink::find(int64_t tag) const {
  const auto found = targets_.find(tag);
  return found == targets_.end() ? nullptr : &found->second;
}

std::vector<std::shared_ptr<PendingResponse>> EngineLink::responses() const {
  std::unordered_set<const PendingResponse*> seen;
  std::vector<std::shared_ptr<PendingResponse>> all;
  for (const auto& [key, response] : kept_) {
    seen.insert(key);
    all.push_back(response);
  }
  for (const auto& [tag, target] : targets_) {
    if (seen.insert(target.response.get()).second) all.push_back(target.response);
  }
  return all;
}

std::vector<int64_t> EngineLink::tags_of(const PendingResponse& response) const {
  std::vector<int64_t> tags;
  for (const auto& [tag, target] : targets_) {
    if (target.response.get() == &response) tags.push_back(tag);
  }
  return tags;
}

void EngineLink::dispatch() {
  woken_at_ = Clock::now();
  lags_ = woken_at_ - came_at_.load() > kMostLag;
  is_awake_.store(false);
  channel_->poll(events_);
  std::unordered_set<PendingResponse*> seen;
  std::vector<std::shared_ptr<PendingResponse>> touched;
  for (TokenEvent& event : events_) {
    const auto found = targets_.find(event.tag);
    if (found == targets_.end()) continue;
    Target& target = found->second;
    if (seen.insert(target.response.get()).second) touched.push_back(target.response);
    const bool is_last = event.ending != nullptr && --target.num_open == 0;
    target.response->has_events = true;
    protect(*target.response, [&] { target.response->take(target.which, event); });
    if (is_last) targets_.erase(event.tag);
  }
  for (const auto& response : touched) protect(*response, [&] { response->flush(); });
}

}  // namespace paceline
