#include "traffic/load_client/connection_pool.h"

namespace paceline::traffic {

Connection& ConnectionPool::take() {
  while (!idle_.empty()) {
    Connection& connection = *idle_.back();
    idle_.pop_back();
    if (connection.is_idle()) return connection;
    destroy(connection);
  }
  auto made = std::make_unique<Connection>(poller_, port_);
  Connection& connection = *made;
  all_.emplace(&connection, std::move(made));
  ++num_made_;
  return connection;
}

void ConnectionPool::give_back(Connection& connection) {
  if (connection.is_connected() && !connection.is_counted()) {
    connect_times_.add(connection.connect_seconds());
    connection.set_counted();
  }
  if (connection.is_idle()) {
    idle_.push_back(&connection);
  } else {
    destroy(connection);
  }
}

void ConnectionPool::destroy(Connection& connection) {
  poller_.defer([this, gone = &connection] { all_.erase(gone); });
}

}  // namespace paceline::traffic
