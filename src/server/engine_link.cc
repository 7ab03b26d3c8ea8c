#include "server/engine_link.h"

#include <exception>
#include <unordered_set>
#include <utility>

namespace paceline {
namespace {

// What goes wrong with one answer, want of memory as a rule, is that answer's end alone.
template <class Work>
void protect(OpenAnswer& answer, const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    answer.fail(api_error(ErrorCode::internal, error.what()));
  }
}

}  // namespace

EngineLink::EngineLink(Engine& engine, HttpServer& http)
    : engine_(engine), http_(http), channel_(std::make_shared<Channel>([this] {
        if (!is_awake_.exchange(true)) http_.post([this] { dispatch(); });
      })) {}

std::optional<RequestId> EngineLink::submit(const std::shared_ptr<OpenAnswer>& answer,
                                            AnswerPart which, GenerateRequest request) {
  const int64_t tag = next_tag_++;
  const int32_t num_choices = request.n;
  const auto id = engine_.submit(std::move(request), channel_, tag);
  if (id) targets_.emplace(tag, Target{answer, which, num_choices});
  return id;
}

const EngineLink::Target* EngineLink::find(int64_t tag) const {
  const auto found = targets_.find(tag);
  return found == targets_.end() ? nullptr : &found->second;
}

std::vector<std::shared_ptr<OpenAnswer>> EngineLink::answers() const {
  std::unordered_set<const OpenAnswer*> seen;
  std::vector<std::shared_ptr<OpenAnswer>> all;
  for (const auto& [key, answer] : kept_) {
    seen.insert(key);
    all.push_back(answer);
  }
  for (const auto& [tag, target] : targets_) {
    if (seen.insert(target.answer.get()).second) all.push_back(target.answer);
  }
  return all;
}

std::vector<int64_t> EngineLink::tags_of(const OpenAnswer& answer) const {
  std::vector<int64_t> tags;
  for (const auto& [tag, target] : targets_) {
    if (target.answer.get() == &answer) tags.push_back(tag);
  }
  return tags;
}

void EngineLink::dispatch() {
  is_awake_.store(false);
  woken_at_ = std::chrono::steady_clock::now();
  channel_->poll(events_);
  std::unordered_set<OpenAnswer*> seen;
  std::vector<std::shared_ptr<OpenAnswer>> touched;
  for (TokenEvent& event : events_) {
    const auto found = targets_.find(event.tag);
    if (found == targets_.end()) continue;
    Target& target = found->second;
    if (seen.insert(target.answer.get()).second) touched.push_back(target.answer);
    const bool is_last = event.ending != nullptr && --target.num_open == 0;
    target.answer->has_events = true;
    protect(*target.answer, [&] { target.answer->take(target.which, event); });
    if (is_last) targets_.erase(event.tag);
  }
  for (const auto& answer : touched) protect(*answer, [&] { answer->flush(); });
}

}  // namespace paceline
