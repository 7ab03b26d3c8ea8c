// ModelHost has the models that a server serves, by name: it loads one when a request needs it, and
// unloads the least recently used one when memory is short.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "server/hosted_model.h"

namespace paceline {

enum class ModelState : uint8_t { unloaded, loading, loaded, unloading };

struct ModelStatus {
  ModelState state = ModelState::unloaded;
  std::string failure;  // why the last load failed; empty: it didn't
  std::optional<std::chrono::milliseconds> sleeps_in = {};  // unless it is used; nothing: never
};

// A loaded model while something uses it: it stays loaded as long.
using ModelLease = std::shared_ptr<HostedModel>;

// Any thread. A model is loaded, unloaded and destroyed on a thread of the host's own, one after
// another. It is unloaded once its last lease is gone.
class ModelHost {
 public:
  struct Options {
    std::chrono::milliseconds sleep_after{0};  // without a use; 0: never
    bool accepts_any_name = false;             // an unknown name is the first model's
  };
  // Makes what serves a loaded model and starts its engine. The host's thread, or start()'s.
  using Open = std::function<std::shared_ptr<HostedModel>(size_t index, ServedModel model)>;

  ModelHost(std::vector<ModelEntry> entries, Options options, Open open);
  ~ModelHost();
  ModelHost(const ModelHost&) = delete;
  ModelHost& operator=(const ModelHost&) = delete;

  // Opens the models that are loaded already.
  void start();
  // Cancels a load, then stops the engines. Nothing is loaded from then on.
  void stop();

  size_t num_models() const;
  const ModelEntry& entry(size_t index) const;
  // The names of all models.
  std::vector<std::string> names() const;
  ModelStatus status(size_t index) const;

  // The index of the model that has this name or an adapter of it; the first one for no name.
  // Nothing when there is none.
  std::optional<size_t> find(const std::optional<std::string>& name) const;
  // The same; with accepts_any_name the first one. Throws RequestError model_not_found.
  size_t choose(const std::optional<std::string>& name) const;

  // Null unless it is loaded. To look at it is no use, and doesn't keep it from sleep.
  ModelLease try_use(size_t index);
  ModelLease look(size_t index) const;
  // Calls `ready` once it is loaded, or with null and the reason why it isn't: at once, or on the
  // host's thread.
  using Ready = std::function<void(ModelLease model, const std::string& problem)>;
  void use(size_t index, Ready ready);
  // Loads it without using it; one that unload() was to follow stays. False when it is loaded or
  // being loaded.
  bool load(size_t index);
  // Unloads it after its last use; requests that come meanwhile load it again. False when it isn't
  // loaded. Throws RequestError for a model that can't be loaded again.
  bool unload(size_t index);
  // From now on the model sleeps after this time without a use, whatever sleep_after is; below 0:
  // never.
  void keep_alive(size_t index, std::chrono::milliseconds time);
  // Fails the uses that wait for a load.
  void fail_waiting(const std::string& problem);

  // Those that are loaded, also while they wait for the end of their uses. To look at them is no
  // use.
  std::vector<ModelLease> loaded() const;
  // Seconds since the last step of the engine that has taken longest for one.
  double step_age() const;
  // A step of 10 s and more counts as hung.
  bool is_well() const;

 private:
  struct State;

  std::shared_ptr<State> state_;  // outlived by leases
  std::thread thread_;
};

}  // namespace paceline
