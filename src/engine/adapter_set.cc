#include "engine/adapter_set.h"

#include <utility>

#include "runner/loaded_adapter.h"

namespace paceline {

AdapterSet::Handle AdapterSet::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto at = adapters_.find(name);
  return at == adapters_.end() ? nullptr : at->second;
}

std::vector<AdapterSet::Handle> AdapterSet::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<Handle> all;
  for (const auto& [name, adapter] : adapters_) all.push_back(adapter);
  return all;
}

std::vector<std::string> AdapterSet::names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all;
  for (const auto& [name, adapter] : adapters_) all.push_back(name);
  return all;
}

// The one that it replaces is freed outside of the lock.
void AdapterSet::add(Handle adapter) {
  const std::lock_guard lock(mutex_);
  adapters_[adapter->name].swap(adapter);
}

bool AdapterSet::remove(std::string_view name) {
  Handle removed;
  const std::lock_guard lock(mutex_);
  const auto at = adapters_.find(name);
  if (at == adapters_.end()) return false;
  removed = std::move(at->second);
  adapters_.erase(at);
  return true;
}

}  // namespace paceline
