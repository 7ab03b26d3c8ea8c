#include "engine/adapter_set.h"

#include <algorithm>
#include <utility>

#include "runner/loaded_adapter.h"

namespace paceline {

AdapterSet::Handle AdapterSet::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto at = adapters_.find(name);
  if (at == adapters_.end()) return nullptr;
  at->second.last_use = ++num_uses_;
  return at->second.adapter;
}

std::vector<AdapterSet::Handle> AdapterSet::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<Handle> all;
  for (const auto& [name, entry] : adapters_) all.push_back(entry.adapter);
  return all;
}

std::vector<std::string> AdapterSet::names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all;
  for (const auto& [name, entry] : adapters_) all.push_back(name);
  return all;
}

// The one that it replaces is freed outside of the lock.
void AdapterSet::add(Handle adapter) {
  const std::lock_guard lock(mutex_);
  Entry& entry = adapters_[adapter->name];
  entry.is_lasting = true;
  entry.last_use = ++num_uses_;
  entry.adapter.swap(adapter);
}

void AdapterSet::add_at_run_time(Handle adapter, int64_t most) {
  std::vector<Handle> removed;  // freed outside of the lock
  const std::lock_guard lock(mutex_);
  Entry& entry = adapters_[adapter->name];
  entry.is_lasting = false;
  entry.last_use = ++num_uses_;
  entry.adapter.swap(adapter);
  const auto count = [this] {
    return std::ranges::count_if(adapters_, [](const auto& one) { return !one.second.is_lasting; });
  };
  const Handle kept = entry.adapter;  // the new one is held
  while (count() > most && remove_oldest(removed)) {
  }
}

bool AdapterSet::remove_oldest(std::vector<Handle>& removed) {
  auto oldest = adapters_.end();
  for (auto at = adapters_.begin(); at != adapters_.end(); ++at) {
    // Handles are copied under the lock, or from one that a request holds.
    if (at->second.is_lasting || at->second.adapter.use_count() > 1) continue;
    if (oldest == adapters_.end() || at->second.last_use < oldest->second.last_use) oldest = at;
  }
  if (oldest == adapters_.end()) return false;
  removed.push_back(std::move(oldest->second.adapter));
  adapters_.erase(oldest);
  return true;
}

bool AdapterSet::remove(std::string_view name) {
  Handle removed;
  const std::lock_guard lock(mutex_);
  const auto at = adapters_.find(name);
  if (at == adapters_.end()) return false;
  removed = std::move(at->second.adapter);
  adapters_.erase(at);
  return true;
}

}  // namespace paceline
