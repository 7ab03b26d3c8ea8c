// ServerContext is the state that all routes share, used on the I/O thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "engine/engine_snapshot.h"
#include "http/http.h"
#include "protocol/token_names.h"
#include "server/api_keys.h"
#include "server/engine_link.h"
#include "server/in_flight_limit.h"
#include "server/memory_watch.h"
#include "server/request_rules.h"
#include "server/server_metrics.h"
#include "server/server_options.h"
#include "server/service_manager.h"
#include "server/step_history.h"
#include "server/worker_pool.h"
#include "text/text_model.h"

namespace paceline {

class EngineThread;

struct ServerContext {
  const TextModel& model;
  const ServerOptions& options;
  HttpServer& http;
  TokenNames names;
  ApiKeys keys;
  EngineLink link;
  InFlightLimit in_flight;
  RequestRules rules;  // read on any thread
  BytesLimit body_bytes;
  BytesLimit response_bytes;  // of large ones
  MemoryWatch memory;
  ServerMetrics metrics;
  StepHistory& steps;
  EngineSnapshot last_snapshot;                 // the last one taken
  const EngineThread* engine_thread = nullptr;  // once the server runs
  std::chrono::system_clock::time_point started = std::chrono::system_clock::now();
  ServiceManager manager;
  std::atomic<int64_t> num_unknown_fields{0};
  bool draining = false;  // shutting down: not ready
  bool refusing = false;  // no request is admitted
  WorkerPool workers;     // last: its jobs use the others

  // Seconds since the engine's last step, 0 while it has nothing to do.
  double step_age() const;
  // A step of 10 s and more counts as hung.
  bool is_engine_well() const;
};

}  // namespace paceline
