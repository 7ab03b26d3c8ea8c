// HTTP as the server's other parts see it: exchanges of a request and an answer, on one I/O thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time_source.h"

namespace paceline {

struct HttpHeader {
  std::string name;
  std::string value;
};

struct HttpRequest {
  std::string method;          // "GET"
  std::string path;            // decoded and checked: well-formed UTF-8 without NUL; "/v1/models"
  std::string query;           // as it came, without the "?"
  std::string authority = {};  // of a target "http://host/path", which counts instead of Host
  std::vector<HttpHeader> headers;
  std::string body;
  std::string peer;          // the address, "127.0.0.1:41522" or "unix"
  bool is_loopback = false;  // from this machine

  // The value of the only header of this name, in whatever case; nullptr without one. One that came
  // several times is joined by ", ".
  const std::string* header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<HttpHeader> headers = {};  // further ones
  bool close = false;                    // the connection, after this answer
};

// Bytes of a connection so far, over all its answers.
struct HttpProgress {
  int64_t written = 0;
  int64_t confirmed = 0;  // by the client's kernel
};

// One request that waits for its answer. Its members are called on the I/O thread, and so are its
// callbacks. It outlives its connection as long as it has an owner; what is written then is
// dropped.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;

  virtual const HttpRequest& request() const = 0;
  // The body may be taken out of it.
  virtual HttpRequest& request() = 0;

  // The whole answer; once, and nothing after it.
  virtual void respond(HttpResponse response) = 0;

  // An answer in pieces, each sent as soon as it may be (chunked). `response.body` is its first
  // one.
  virtual void begin(HttpResponse response) = 0;
  virtual void write(std::string_view piece) = 0;
  // The answer is whole.
  virtual void end() = 0;
  // The answer can't be made whole: the connection is closed without its end.
  virtual void abort() = 0;

  // Bytes written here that the kernel hasn't taken yet.
  virtual size_t buffered_bytes() const = 0;
  // How far its client has taken what was written; zeros once the client is gone.
  virtual HttpProgress progress() const = 0;
  // False once the client is gone or the answer has ended.
  virtual bool is_open() const = 0;
  // Called once, when the client goes before the answer has ended, within 50 ms of its FIN or RST,
  // or when it takes nothing for `write_stall`. Whatever it was given before is replaced. Given too
  // late, when is_open() is false already, it is never called.
  virtual void on_close(std::function<void()> callback) = 0;
};

// What becomes of a request's header before its body is read: nothing, or an answer that is sent in
// its place (the connection is closed then, the body unread).
struct HttpGate {
  std::optional<HttpResponse> refusal;
  // Held until the exchange is gone: a ticket.
  std::shared_ptr<void> held;
};

struct HttpHandler {
  // With an empty body: it hasn't been read.
  std::function<HttpGate(const HttpRequest& head)> gate;
  std::function<void(std::shared_ptr<HttpExchange> exchange, std::shared_ptr<void> held)> handle;
  // The body of an answer to what never became a request: 400 of a malformed one, 408, 413, 414,
  // 431, 503 over a connection limit. JSON. `head` has a path once its first line was read.
  std::function<std::string(const HttpRequest& head, int status, std::string_view message)>
      error_body;
};

struct HttpLimits {
  size_t max_connections = 16384;
  size_t max_connections_per_address = 1024;  // loopback addresses are exempt
  size_t max_uri_bytes = 8 << 10;
  size_t max_header_line_bytes = 8 << 10;
  size_t max_header_bytes = 16 << 10;
  size_t max_header_fields = 100;
  size_t max_body_bytes = 8 << 20;
  std::chrono::milliseconds header_time{10'000};
  std::chrono::milliseconds body_time{30'000};
  std::chrono::milliseconds body_grace{5'000};  // from then on at least 1 KiB/s of the body
  std::chrono::milliseconds keep_alive_time{75'000};
  // A client must take some of a pending output within every `write_stall`, and after the first one
  // `min_send_rate` bytes a second on average.
  std::chrono::milliseconds write_stall{30'000};
  size_t min_send_rate = 4096;
  // Of all connections together; the one whose output has waited longest is closed beyond it.
  size_t max_unsent_bytes = 256 << 20;
};

struct HttpAddress {
  std::string host = "127.0.0.1";  // an address or a name
  uint16_t port = 8080;            // 0: any free one
  std::string unix_socket;         // a path; then host and port are not used
  std::string tls_certificate;     // PEM files; both or none
  std::string tls_key;
};

struct HttpCounters {
  int64_t connections = 0;   // open
  int64_t accepted = 0;      // connections so far
  int64_t requests = 0;      // that were handed on or refused by the gate
  int64_t malformed = 0;     // answered 4xx by the wire itself
  int64_t stalled = 0;       // closed because the client took nothing
  int64_t slow = 0;          // closed because the client was slower than min_send_rate
  int64_t shed = 0;          // closed because of max_unsent_bytes
  int64_t unsent_bytes = 0;  // of all connections
};

// HTTP/1.1 with keep-alive and pipelining (answered in order, one at a time), no HTTP/2, no
// compression, no 100-continue before the gate has been passed. A request with both Content-Length
// and Transfer-Encoding, with more than one of either, an obsolete folded header, a NUL, a bare
// line feed in its header, or a chunked body with an ill-formed size is refused with 400 and the
// connection closed. HTTP/1.1 without Host is 400. A HEAD is handled as a GET and answered without
// its body.
class HttpServer {
 public:
  virtual ~HttpServer() = default;

  // The port that was bound: of use when 0 was asked for.
  virtual uint16_t port() const = 0;

  // Runs the I/O thread's loop in the calling thread, until stop().
  virtual void run() = 0;
  // Any thread. Calls `work` on the I/O thread.
  virtual void post(std::function<void()> work) = 0;
  // I/O thread. Calls `work` once, so much later.
  virtual void after(std::chrono::milliseconds delay, std::function<void()> work) = 0;

  // I/O thread. No further connections; idle ones are closed, the others after their answers.
  virtual void close_listeners() = 0;
  // Any thread. run() returns; connections are cut.
  virtual void stop() = 0;

  virtual HttpCounters counters() const = 0;
};

// Binds and listens; throws Error invalid (a bad address, one in use, no right to it, unreadable
// TLS files) with the address and what would help.
std::unique_ptr<HttpServer> make_http_server(const HttpAddress& address, const HttpLimits& limits,
                                             HttpHandler handler);

}  // namespace paceline
