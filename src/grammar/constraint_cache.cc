#include "grammar/constraint_cache.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <utility>

#include "base/time_source.h"

namespace paceline {
namespace {

bool is_ready(const std::shared_future<std::shared_ptr<Constraint>>& constraint) {
  return constraint.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

std::string ConstraintCache::key_of(const ConstraintSpec& spec) {
  std::string key = fmt::format("{} {} {} {}:{}", static_cast<int>(spec.kind), spec.strict,
                                spec.best_effort, spec.text.size(), spec.text);
  for (const std::string& choice : spec.choices) {
    key += fmt::format(" {}:", choice.size());
    key += choice;
  }
  return key;
}

ConstraintCache::ConstraintCache(std::function<ConstraintVocabulary()> vocabulary)
    : ConstraintCache(std::move(vocabulary), Limits{}) {}

ConstraintCache::ConstraintCache(std::function<ConstraintVocabulary()> vocabulary,
                                 const Limits& limits)
    : make_vocabulary_(std::move(vocabulary)), limits_(limits) {}

std::shared_ptr<Constraint> ConstraintCache::get(const ConstraintSpec& spec) {
  return get(key_of(spec), [&spec] { return compile_constraint(spec); });
}

void ConstraintCache::check(const ConstraintSpec& spec) {
  find(
      key_of(spec), [&spec] { return compile_constraint(spec); }, true);
}

std::shared_ptr<Constraint> ConstraintCache::get(std::string key,
                                                 const std::function<Grammar()>& compile) {
  return find(std::move(key), compile, false);
}

std::shared_ptr<Constraint> ConstraintCache::find(std::string key,
                                                  const std::function<Grammar()>& make,
                                                  bool is_check) {
  std::promise<std::shared_ptr<Constraint>> promise;
  {
    std::unique_lock lock(mutex_);
    if (const auto known = by_key_.find(key); known != by_key_.end()) {
      entries_.splice(entries_.begin(), entries_, known->second);
      Entry& entry = *known->second;
      const bool was_counted = !is_check && entry.num_checked > 0;
      counters_.hits += was_counted ? 0 : 1;
      entry.num_checked += is_check ? 1 : was_counted ? -1 : 0;
      const auto constraint = known->second->constraint;
      lock.unlock();
      return counted(constraint.get(), is_check);
    }
    entries_.push_front({std::move(key), promise.get_future().share(), is_check ? 1 : 0});
    by_key_.emplace(entries_.front().key, entries_.begin());
    drop_oldest();
  }
  try {
    std::shared_ptr<Constraint> constraint = compile(make);
    promise.set_value(constraint);
    return counted(std::move(constraint), is_check);
  } catch (const Error& error) {
    count(error.code());
    promise.set_exception(std::current_exception());
    throw;
  } catch (...) {
    count(ErrorCode::internal);
    promise.set_exception(std::current_exception());
    throw;
  }
}

std::shared_ptr<Constraint> ConstraintCache::compile(const std::function<Grammar()>& make) {
  std::call_once(vocabulary_made_, [this] { vocabulary_ = make_vocabulary_(); });
  const auto begin = Clock::now();
  auto constraint =
      std::make_shared<Constraint>(make(), vocabulary_.trie, WalkerLimits{}, vocabulary_.tokenise);
  const std::chrono::duration<double> time = Clock::now() - begin;
  const std::lock_guard lock(mutex_);
  ++counters_.compiled;
  counters_.compile_seconds += time.count();
  return constraint;
}

// Counts requests that aren't held to all that they asked for, each once.
std::shared_ptr<Constraint> ConstraintCache::counted(std::shared_ptr<Constraint> constraint,
                                                     bool is_check) {
  if (is_check || constraint->warnings().empty()) return constraint;
  const std::lock_guard lock(mutex_);
  ++counters_.widened;
  return constraint;
}

void ConstraintCache::count(ErrorCode code) {
  const std::lock_guard lock(mutex_);
  if (code == ErrorCode::invalid) {
    ++counters_.invalid;
  } else if (code == ErrorCode::unsupported) {
    ++counters_.unsupported;
  } else if (code == ErrorCode::exhausted) {
    ++counters_.exhausted;
  } else {
    ++counters_.failed;
  }
}

size_t ConstraintCache::bytes_of(const Entry& entry) {
  const size_t own = sizeof(Entry) + entry.key.size();
  if (!is_ready(entry.constraint)) return own;
  try {
    return own + entry.constraint.get()->memory_bytes();
  } catch (...) {
    return own;  // it was refused
  }
}

// Those that requests still use live on without the cache. The newest entry stays.
void ConstraintCache::drop_oldest() {
  size_t bytes = 0;
  size_t num_kept = 0;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    bytes += bytes_of(*entry);
    const bool fits = bytes <= limits_.max_bytes && num_kept < limits_.max_entries;
    if (num_kept == 0 || fits) {
      ++num_kept;
      ++entry;
      continue;
    }
    by_key_.erase(entry->key);
    entry = entries_.erase(entry);
  }
}

ConstraintCounters ConstraintCache::counters() const {
  const std::lock_guard lock(mutex_);
  ConstraintCounters counters = counters_;
  counters.kept = entries_.size();
  for (const Entry& entry : entries_) counters.kept_bytes += bytes_of(entry);
  return counters;
}

}  // namespace paceline
