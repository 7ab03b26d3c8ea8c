// ConnectionPool reuses connections, and records the time to open each.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "traffic/load_client/connection.h"
#include "traffic/load_client/samples.h"

namespace paceline::traffic {

class ConnectionPool {
 public:
  ConnectionPool(Poller& poller, uint16_t port) : poller_(poller), port_(port) {}

  // An idle one, or a new one.
  Connection& take();
  // Takes back a connection after its answer: keeps it if it is open, else destroys it after the
  // current round.
  void give_back(Connection& connection);

  int64_t num_made() const { return num_made_; }
  const Samples& connect_times() const { return connect_times_; }

 private:
  void destroy(Connection& connection);

  Poller& poller_;
  uint16_t port_;
  int64_t num_made_ = 0;
  Samples connect_times_;
  std::unordered_map<Connection*, std::unique_ptr<Connection>> all_;
  std::vector<Connection*> idle_;
};

}  // namespace paceline::traffic
