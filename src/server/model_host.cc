#include "server/model_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/request_error.h"
#include "base/start_thread.h"
#include "base/time_source.h"
#include "engine/adapter_set.h"

namespace paceline {

constexpr std::chrono::milliseconds kLookAgain{200};

struct ModelHost::State : std::enable_shared_from_this<State> {
  struct Slot {
    ModelEntry entry;
    ModelState state = ModelState::unloaded;
    std::shared_ptr<HostedModel> model;  // of one that is loaded or unloading
    int64_t num_leases = 0;
    int64_t num_uses = 0;  // of them
    Clock::time_point last_use = Clock::now();
    std::vector<Ready> waiting;
    std::string failure;
    bool leaves_when_loaded = false;  // unload() came during its load
    std::optional<std::chrono::milliseconds>
        keep_alive;  // as a request has asked; below 0: for ever
  };
  using Lock = std::unique_lock<std::mutex>;
  enum class Purpose : bool { use, look };

  State(std::vector<ModelEntry> entries, Options its_options, Open its_open)
      : options(its_options), open(std::move(its_open)) {
    for (ModelEntry& entry : entries) slots.push_back({.entry = std::move(entry)});
  }

  ModelLease lease(Slot& slot, Purpose purpose) {
    const int64_t num_uses = purpose == Purpose::use ? 1 : 0;
    ++slot.num_leases;
    slot.num_uses += num_uses;
    return {slot.model.get(), [self = shared_from_this(), &slot, num_uses](HostedModel*) {
              const std::lock_guard lock(self->mutex);
              if (num_uses > 0) slot.last_use = Clock::now();
              slot.num_uses -= num_uses;
              --slot.num_leases;
              if (slot.state == ModelState::unloading) self->changed.notify_all();
            }};
  }

  std::optional<size_t> find(const std::string& name) const {
    const auto has = [&name](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    for (size_t i = 0; i < slots.size(); ++i) {
      if (has(slots[i].entry.names)) return i;
    }
    for (size_t i = 0; i < slots.size(); ++i) {
      const Slot& slot = slots[i];
      if (has(slot.entry.adapters)) return i;
      const bool is_loaded = slot.state == ModelState::loaded;
      const AdapterSet* adapters = is_loaded ? slot.model->text.adapters : nullptr;
      if (adapters != nullptr && adapters->find(name) != nullptr) return i;
    }
    return std::nullopt;
  }

  void want(size_t index) {
    slots[index].state = ModelState::loading;
    wanted.push_back(index);
    changed.notify_all();
  }

  // All the work of the host's thread.
  void work() {
    Lock lock(mutex);
    while (!stopping) {
      if (close_one(lock)) continue;
      if (!wanted.empty()) {
        const size_t index = wanted.front();
        wanted.pop_front();
        load(index, lock);
      } else if (const auto next = put_to_sleep()) {
        changed.wait_until(lock, *next);
      } else {
        changed.wait(lock);
      }
    }
  }

  // When a loaded model sleeps; nothing: never.
  std::optional<Clock::time_point> sleep_at(const Slot& slot) const {
    if (!may_leave(slot)) return std::nullopt;
    const bool is_asked = slot.keep_alive.has_value();
    const auto after = is_asked ? *slot.keep_alive : options.sleep_after;
    if (after.count() < 0 || (after.count() == 0 && !is_asked)) return std::nullopt;
    // One that is in use is looked at again.
    if (slot.num_uses > 0) return Clock::now() + std::max(after, kLookAgain);
    return slot.last_use + after;
  }

  // Unloads what has slept enough. When to look again; nothing: when something changes.
  std::optional<Clock::time_point> put_to_sleep() {
    std::optional<Clock::time_point> next;
    const auto now = Clock::now();
    for (Slot& slot : slots) {
      const auto at = sleep_at(slot);
      if (!at) continue;
      if (*at <= now) {
        slot.state = ModelState::unloading;
        next = now;
      } else {
        next = std::min(next.value_or(*at), *at);
      }
    }
    return next;
  }

  static bool may_leave(const Slot& slot) {
    return slot.state == ModelState::loaded && slot.entry.load != nullptr;
  }

  // Destroys a model that is to be unloaded and has no leases; false when there is none.
  bool close_one(Lock& lock) {
    const auto found = std::find_if(slots.begin(), slots.end(), [](const Slot& slot) {
      return slot.state == ModelState::unloading && slot.model != nullptr && slot.num_leases == 0;
    });
    if (found == slots.end()) return false;
    std::shared_ptr<HostedModel> model = std::move(found->model);
    lock.unlock();
    model->stop();
    model = nullptr;
    lock.lock();
    found->state = ModelState::unloaded;
    if (!found->waiting.empty()) want(static_cast<size_t>(found - slots.begin()));
    return true;
  }

  // Where memory is short, the least recently used models make room.
  void load(size_t index, Lock& lock) {
    Slot& slot = slots[index];
    slot.failure.clear();
    while (true) {
      bool lacks_memory = false;
      lock.unlock();
      std::shared_ptr<HostedModel> model;
      std::string failure;
      try {
        model = open(index, slot.entry.load(cancelled));
      } catch (const Error& error) {
        lacks_memory = error.code() == ErrorCode::exhausted;
        failure = error.what();
      } catch (const std::bad_alloc&) {
        lacks_memory = true;
        failure = "out of memory";
      } catch (const std::exception& error) {
        failure = error.what();
      }
      lock.lock();
      slot.model = std::move(model);
      if (slot.model == nullptr && lacks_memory && make_room(lock)) continue;
      slot.failure = std::move(failure);
      return end_load(slot, lock);
    }
  }

  // Unloads the least recently used model, of those in use the one whose uses began first, once
  // they have ended; false when none is left.
  bool make_room(Lock& lock) {
    Slot* oldest = nullptr;
    const auto age = [](const Slot& slot) { return std::pair(slot.num_uses > 0, slot.last_use); };
    for (Slot& slot : slots) {
      if (!may_leave(slot)) continue;
      if (oldest == nullptr || age(slot) < age(*oldest)) oldest = &slot;
    }
    if (oldest == nullptr || stopping) return false;
    oldest->state = ModelState::unloading;
    while (oldest->state == ModelState::unloading && !stopping) {
      if (!close_one(lock)) changed.wait(lock);
    }
    return !stopping;
  }

  void end_load(Slot& slot, Lock& lock) {
    const bool is_loaded = slot.model != nullptr;
    slot.state = is_loaded ? ModelState::loaded : ModelState::unloaded;
    slot.last_use = Clock::now();
    const std::string failure = slot.failure;
    std::vector<std::pair<Ready, ModelLease>> ready;
    for (Ready& one : std::exchange(slot.waiting, {})) {
      ready.emplace_back(std::move(one), is_loaded ? lease(slot, Purpose::use) : nullptr);
    }
    if (std::exchange(slot.leaves_when_loaded, false) && is_loaded) {
      slot.state = ModelState::unloading;
    }
    lock.unlock();
    for (auto& [one, model] : ready) one(std::move(model), failure);
    ready.clear();
    lock.lock();
  }

  const Options options;
  const Open open;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<Slot> slots;     // their addresses stay
  std::deque<size_t> wanted;  // to be loaded, in this order
  bool stopping = false;
  std::atomic<bool> cancelled = false;
};

ModelHost::ModelHost(std::vector<ModelEntry> entries, Options options, Open open)
    : state_(std::make_shared<State>(std::move(entries), options, std::move(open))) {}

ModelHost::~ModelHost() {
  stop();
  // Leases may outlive it, but nothing uses them.
  std::deque<State::Slot> slots;
  const std::lock_guard lock(state_->mutex);
  for (State::Slot& slot : state_->slots) {
    slots.push_back({.model = std::move(slot.model), .waiting = std::move(slot.waiting)});
  }
}

void ModelHost::start() {
  for (size_t i = 0; i < num_models(); ++i) {
    State::Slot& slot = state_->slots[i];
    if (!slot.entry.loaded) continue;
    slot.model = state_->open(i, std::move(*slot.entry.loaded));
    slot.entry.loaded.reset();
    slot.state = ModelState::loaded;
  }
  thread_ = start_thread([state = state_.get()] { state->work(); });
}

void ModelHost::stop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->cancelled = true;
  }
  state_->changed.notify_all();
  if (thread_.joinable()) thread_.join();
  for (State::Slot& slot : state_->slots) {
    if (slot.model != nullptr) slot.model->stop();
  }
}

size_t ModelHost::num_models() const { return state_->slots.size(); }
const ModelEntry& ModelHost::entry(size_t index) const { return state_->slots[index].entry; }

std::vector<std::string> ModelHost::names() const {
  std::vector<std::string> all;
  for (const State::Slot& slot : state_->slots) {
    all.insert(all.end(), slot.entry.names.begin(), slot.entry.names.end());
  }
  return all;
}

ModelStatus ModelHost::status(size_t index) const {
  const std::lock_guard lock(state_->mutex);
  const State::Slot& slot = state_->slots[index];
  const auto at = state_->sleep_at(slot);
  return {.state = slot.state,
          .failure = slot.failure,
          .sleeps_in = at ? std::optional(std::chrono::duration_cast<std::chrono::milliseconds>(
                                *at - Clock::now()))
                          : std::nullopt};
}

std::optional<size_t> ModelHost::find(const std::optional<std::string>& name) const {
  if (!name) return 0;
  const std::lock_guard lock(state_->mutex);
  return state_->find(*name);
}

size_t ModelHost::choose(const std::optional<std::string>& name) const {
  if (const auto found = find(name)) return *found;
  if (state_->options.accepts_any_name) return 0;
  throw unknown_model(*name, names());
}

ModelLease ModelHost::try_use(size_t index) {
  const std::lock_guard lock(state_->mutex);
  State::Slot& slot = state_->slots[index];
  return slot.state == ModelState::loaded ? state_->lease(slot, State::Purpose::use) : nullptr;
}

ModelLease ModelHost::look(size_t index) const {
  const std::lock_guard lock(state_->mutex);
  State::Slot& slot = state_->slots[index];
  return slot.state == ModelState::loaded ? state_->lease(slot, State::Purpose::look) : nullptr;
}

void ModelHost::use(size_t index, Ready ready) {
  ModelLease model;
  {
    const std::lock_guard lock(state_->mutex);
    State::Slot& slot = state_->slots[index];
    if (slot.state != ModelState::loaded && !state_->stopping) {
      slot.waiting.push_back(std::move(ready));
      if (slot.state == ModelState::unloaded) state_->want(index);
      return;
    }
    if (!state_->stopping) model = state_->lease(slot, State::Purpose::use);
  }
  const std::string problem = model == nullptr ? "the server is shutting down" : "";
  ready(std::move(model), problem);
}

void ModelHost::keep_alive(size_t index, std::chrono::milliseconds time) {
  const std::lock_guard lock(state_->mutex);
  state_->slots[index].keep_alive = time;
  state_->changed.notify_all();
}

bool ModelHost::load(size_t index) {
  const std::lock_guard lock(state_->mutex);
  State::Slot& slot = state_->slots[index];
  if (slot.state == ModelState::loading) return std::exchange(slot.leaves_when_loaded, false);
  if (slot.state == ModelState::loaded) return false;
  // Until it is gone, a load waits as a use does.
  if (slot.state == ModelState::unloading) {
    slot.waiting.emplace_back([](const ModelLease&, const std::string&) {});
  } else {
    state_->want(index);
  }
  return true;
}

bool ModelHost::unload(size_t index) {
  const std::lock_guard lock(state_->mutex);
  State::Slot& slot = state_->slots[index];
  if (slot.entry.load == nullptr) {
    throw RequestError("model", ErrorReason::not_enabled,
                       fmt::format("model: {} can't be unloaded", slot.entry.names[0]));
  }
  if (slot.state == ModelState::loading) {
    slot.leaves_when_loaded = true;
  } else if (slot.state == ModelState::loaded) {
    slot.state = ModelState::unloading;
    state_->changed.notify_all();
  } else {
    return false;
  }
  return true;
}

void ModelHost::fail_waiting(const std::string& problem) {
  std::vector<Ready> all;
  {
    const std::lock_guard lock(state_->mutex);
    for (State::Slot& slot : state_->slots) {
      for (Ready& one : std::exchange(slot.waiting, {})) all.push_back(std::move(one));
    }
  }
  for (const Ready& one : all) one(nullptr, problem);
}

std::vector<ModelLease> ModelHost::loaded() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<ModelLease> models;
  for (State::Slot& slot : state_->slots) {
    if (slot.model != nullptr) models.push_back(state_->lease(slot, State::Purpose::look));
  }
  return models;
}

double ModelHost::step_age() const {
  double longest = 0;
  for (const ModelLease& model : loaded()) longest = std::max(longest, model->step_age());
  return longest;
}

bool ModelHost::is_well() const {
  constexpr double kLongestStep = 10;
  return step_age() < kLongestStep;
}

}  // namespace paceline
