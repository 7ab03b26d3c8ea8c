// ServerContext is the state that all routes share, used on the I/O thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/time_source.h"
#include "http/http.h"
#include "protocol/response_store.h"
#include "server/api_keys.h"
#include "server/in_flight_limit.h"
#include "server/memory_watch.h"
#include "server/model_host.h"
#include "server/server_metrics.h"
#include "server/server_options.h"
#include "server/service_manager.h"
#include "server/worker_pool.h"

namespace paceline {

struct ServerContext {
  const ServerOptions& options;
  HttpServer& http;
  ApiKeys keys;
  InFlightLimit in_flight;
  RequestTerms terms;  // read on any thread
  ResponseStore responses;
  // Generations that go on without their connection, by the ids of their responses.
  std::unordered_map<std::string, std::weak_ptr<PendingResponse>> background;
  BytesLimit body_bytes;
  BytesLimit response_bytes;  // of large ones
  MemoryWatch memory;
  std::vector<ServerMetrics> metrics;  // of each model of the host
  ErrorCounts errors = {};
  std::chrono::system_clock::time_point started = WallClock::now();
  ServiceManager manager;
  std::atomic<int64_t> num_unknown_fields{0};
  bool draining = false;  // shutting down: not ready
  bool refusing = false;  // no request is admitted
  ModelHost host;
  WorkerPool workers;  // last: its jobs use the others
};

}  // namespace paceline
