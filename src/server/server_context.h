// ServerContext is what all routes share; its members are used on the I/O thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "engine/engine_snapshot.h"
#include "protocol/token_names.h"
#include "server/api_keys.h"
#include "server/engine_link.h"
#include "server/http.h"
#include "server/memory_watch.h"
#include "server/request_rules.h"
#include "server/server_metrics.h"
#include "server/server_options.h"
#include "server/service_manager.h"
#include "server/step_history.h"
#include "server/tickets.h"
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
  Tickets tickets;
  RequestRules rules;  // read on any thread
  BodyBytes body_bytes;
  MemoryWatch memory;
  ServerMetrics metrics;
  StepHistory& steps;
  EngineSnapshot last_snapshot;                 // what was last seen of it
  const EngineThread* engine_thread = nullptr;  // once the server runs
  std::chrono::system_clock::time_point started = std::chrono::system_clock::now();
  ServiceManager manager;
  std::atomic<int64_t> num_unknown_fields{0};
  bool draining = false;  // it is at its end: not ready any more
  bool refusing = false;  // nobody is let in any more
  WorkerPool workers;     // last, so that its jobs end before what they use

  // Seconds since the engine's last step, 0 while it has nothing to do.
  double step_age() const;
  // A step that lasts 10 s doesn't come back.
  bool is_engine_well() const;
};

}  // namespace paceline
