// BackgroundCalls are the generations that go on without their connection, by the ids of their
// responses.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

namespace paceline {

class PendingResponse;

// I/O thread.
class BackgroundCalls {
 public:
  void add(const std::string& id, const std::shared_ptr<PendingResponse>& response) {
    by_id_[id] = response;
  }
  void remove(const std::string& id) { by_id_.erase(id); }
  // Null when it isn't running.
  std::shared_ptr<PendingResponse> find(const std::string& id) const {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : found->second.lock();
  }

 private:
  std::unordered_map<std::string, std::weak_ptr<PendingResponse>> by_id_;
};

}  // namespace paceline
