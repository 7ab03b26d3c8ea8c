// ResponseStore keeps the responses of the Responses API in memory, so that later requests can read
// them and go on from them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace paceline {

struct ResponseStoreLimits {
  size_t max_responses = 10'000;
  size_t max_bytes = 256 << 20;
  std::chrono::seconds lifetime{24 * 3600};
};

// A text that counts as a store's as long as anything holds it.
using StoredText = std::shared_ptr<const std::string>;

// One response, finished or running.
struct StoredResponse {
  StoredText json;   // as the API has it
  StoredText input;  // the items of its request: a JSON array
  // The conversation up to its end: JSON arrays of items, in order. A response that goes on from
  // this one shares them.
  std::vector<StoredText> context = {};
};

// Thread-safe. A response belongs to the owner of its request's key: others don't find it. Beyond a
// limit the oldest leave.
class ResponseStore {
 public:
  explicit ResponseStore(const ResponseStoreLimits& limits) : limits_(limits) {}

  // Counts the text from now on.
  StoredText keep(std::string text) const;

  // The id is new.
  void add(const std::string& owner, const std::string& id, StoredResponse response);
  // False when it isn't there any more: deleted, or gone for room or age.
  bool replace(const std::string& owner, const std::string& id, StoredResponse response);
  // Null for an id that isn't there, or another owner's.
  std::shared_ptr<const StoredResponse> find(const std::string& owner, const std::string& id);
  bool erase(const std::string& owner, const std::string& id);

  size_t num_responses() const;
  size_t num_bytes() const { return static_cast<size_t>(*bytes_); }

 private:
  struct Entry {
    std::string owner;
    std::string id;
    std::chrono::steady_clock::time_point added;
    std::shared_ptr<const StoredResponse> response;
  };
  using Entries = std::list<Entry>;  // the oldest first

  // The entry, or the list's end.
  Entries::iterator find_entry(const std::string& owner, const std::string& id);
  void remove(Entries::iterator entry);
  void expire();
  void shrink();

  const ResponseStoreLimits limits_;
  const std::shared_ptr<std::atomic<int64_t>> bytes_ = std::make_shared<std::atomic<int64_t>>(0);
  mutable std::mutex mutex_;  // of what follows
  Entries entries_;
  std::unordered_map<std::string, Entries::iterator> by_id_;
};

}  // namespace paceline
