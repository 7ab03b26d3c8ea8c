// ServerFrontend listens from the start of the process and answers 503 `loading` until a server is
// attached.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "http/http.h"

namespace paceline {

// The attached server's callbacks, all called on the I/O thread.
struct FrontendHandlers {
  std::function<HttpGate(const HttpRequest& head)> gate;
  std::function<void(std::shared_ptr<HttpExchange> exchange, std::shared_ptr<void> held)> handle;
  std::function<void()> drain;
};

class ServerFrontend {
 public:
  // Listens, on a thread of its own. Until a server is attached it answers /live and the page's
  // files, and everything else with 503 `loading`. Throws Error invalid as make_http_server does.
  ServerFrontend(HttpAddress address, const HttpLimits& limits);
  // Closes open connections.
  ~ServerFrontend();
  ServerFrontend(const ServerFrontend&) = delete;
  ServerFrontend& operator=(const ServerFrontend&) = delete;

  // "http://127.0.0.1:8080"
  std::string url() const;
  HttpServer& http();

  // Attaches a server. Any thread but the I/O one. Once it returns the handlers are in use; they
  // must live until wait() or close() has returned. False when the frontend is already closed.
  bool open(FrontendHandlers handlers);
  // Any thread. Calls the server's `drain`; closes the frontend when none is attached.
  void drain();
  // Blocks until the loop has ended.
  void wait();
  // Any thread but the I/O one. Ends the loop and waits for its end.
  void close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline
