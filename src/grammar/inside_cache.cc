#include "grammar/inside_cache.h"

namespace paceline {

std::shared_ptr<const TerminalInside> InsideCache::find(const Hash128& regex, size_t part) const {
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(key_of(regex, part));
  return found == kept_.end() ? nullptr : found->second;
}

void InsideCache::keep(const Hash128& regex, size_t part, TerminalInside found) {
  const size_t bytes = sizeof(TerminalInside) + (found.mask ? found.mask->memory_bytes() : 0) +
                       (found.tokens.capacity() + found.exits.capacity()) * sizeof(uint32_t);
  auto kept = std::make_shared<const TerminalInside>(std::move(found));
  const std::lock_guard lock(mutex_);
  if (bytes_ + bytes > kMaxBytes) {
    kept_.clear();
    bytes_ = 0;
  }
  if (kept_.emplace(key_of(regex, part), std::move(kept)).second) bytes_ += bytes;
}

}  // namespace paceline
