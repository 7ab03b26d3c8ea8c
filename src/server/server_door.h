// ServerDoor listens from the start, and says that the model is being loaded until there is a
// server behind it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/http.h"

namespace paceline {

// What stands behind the door; all called on the I/O thread.
struct DoorKeeper {
  std::function<HttpGate(const HttpRequest& head)> gate;
  std::function<void(std::shared_ptr<HttpExchange> exchange, std::shared_ptr<void> held)> handle;
  std::function<void()> drain;
};

class ServerDoor {
 public:
  // Listens, and answers on a thread of its own from here on: /live and the page's files as ever,
  // anything else with 503 `loading`. Throws Error invalid as make_http_server does.
  ServerDoor(HttpAddress address, const HttpLimits& limits);
  // Cuts what is open.
  ~ServerDoor();
  ServerDoor(const ServerDoor&) = delete;
  ServerDoor& operator=(const ServerDoor&) = delete;

  // "http://127.0.0.1:8080"
  std::string url() const;
  HttpServer& http();

  // Any thread but the I/O one. Once it returns the keeper answers; it must live until wait() or
  // close() has returned.
  // False when the door was closed before.
  bool open(DoorKeeper keeper);
  // Any thread. The keeper drains; without one the door is closed.
  void drain();
  // Until the loop has ended.
  void wait();
  // Any thread but the I/O one. Ends the loop, and waits for that.
  void close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline
