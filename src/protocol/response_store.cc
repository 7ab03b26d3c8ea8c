#include "protocol/response_store.h"

#include "base/time_source.h"

#include <iterator>
#include <utility>

#include "base/error.h"

namespace paceline {
namespace {

// A response without its texts.
constexpr int64_t kEntryBytes = 1024;

int64_t bytes_of_text(const std::string& text) {
  return static_cast<int64_t>(text.size() + sizeof(std::string));
}

}  // namespace

StoredText ResponseStore::keep(std::string text) const {
  *bytes_ += bytes_of_text(text);
  return {new std::string(std::move(text)), [bytes = bytes_](const std::string* kept) {
            *bytes -= bytes_of_text(*kept);
            delete kept;
          }};
}

ResponseStore::Entries::iterator ResponseStore::find_entry(const std::string& owner,
                                                           const std::string& id) {
  expire();
  const auto found = by_id_.find(id);
  const bool is_theirs = found != by_id_.end() && found->second->owner == owner;
  return is_theirs ? found->second : entries_.end();
}

void ResponseStore::remove(Entries::iterator entry) {
  by_id_.erase(entry->id);
  entries_.erase(entry);
  *bytes_ -= kEntryBytes;
}

void ResponseStore::expire() {
  const auto now = Clock::now();
  while (!entries_.empty() && now - entries_.front().added >= limits_.lifetime) {
    remove(entries_.begin());
  }
}

void ResponseStore::shrink() {
  while (!entries_.empty() && (entries_.size() > limits_.max_responses ||
                               *bytes_ > static_cast<int64_t>(limits_.max_bytes))) {
    remove(entries_.begin());
  }
}

void ResponseStore::add(const std::string& owner, const std::string& id, StoredResponse response) {
  auto kept = std::make_shared<const StoredResponse>(std::move(response));
  const std::lock_guard lock(mutex_);
  expire();
  entries_.push_back({owner, id, Clock::now(), std::move(kept)});
  const bool is_new = by_id_.emplace(id, std::prev(entries_.end())).second;
  PL_CHECK(is_new, "two responses of one id");
  *bytes_ += kEntryBytes;
  shrink();
}

bool ResponseStore::replace(const std::string& owner, const std::string& id,
                            StoredResponse response) {
  const std::lock_guard lock(mutex_);
  const auto found = find_entry(owner, id);
  if (found == entries_.end()) return false;
  found->response = std::make_shared<const StoredResponse>(std::move(response));
  shrink();
  return true;
}

std::shared_ptr<const StoredResponse> ResponseStore::find(const std::string& owner,
                                                          const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = find_entry(owner, id);
  return found == entries_.end() ? nullptr : found->response;
}

bool ResponseStore::erase(const std::string& owner, const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = find_entry(owner, id);
  if (found == entries_.end()) return false;
  remove(found);
  return true;
}

size_t ResponseStore::num_responses() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace paceline
