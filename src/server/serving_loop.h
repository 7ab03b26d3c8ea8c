// The main loop of `paceline serve` and of the traffic tests' server: construction order, signals
// and exit codes.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "server/served_model.h"
#include "server/server_frontend.h"
#include "server/server_options.h"

namespace paceline {

constexpr int kEngineFailedExit = 70;
constexpr int kSecondSignalExit = 130;

// The signal handler: the first signal drains, the second ends the process at once.
class DrainOnSignal {
 public:
  explicit DrainOnSignal(ServerFrontend& frontend) : frontend_(frontend) {}

  // Any thread.
  void operator()();

 private:
  ServerFrontend& frontend_;
  std::atomic<int> num_signals_ = 0;
};

// Serves the models until the frontend has been drained or an engine fails. Returns the
// failure's message, else "". Calls `say` once the server is listening.
std::string serve_until_drained(ServerFrontend& frontend, std::vector<ModelEntry> models,
                                const ServerOptions& options,
                                const std::function<void(std::string_view)>& say);

}  // namespace paceline
