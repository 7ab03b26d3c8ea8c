// HttpSocket reads and writes a connected socket, in the clear or by TLS, and never waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

struct ssl_ctx_st;
struct ssl_st;

namespace paceline {

struct TlsSessionDeleter {
  void operator()(ssl_st* session) const;
};
using TlsSession = std::unique_ptr<ssl_st, TlsSessionDeleter>;

// A certificate with its key; TLS 1.2 and 1.3.
class TlsContext {
 public:
  // PEM files. Throws Error invalid when they can't be read or don't belong together.
  TlsContext(const std::string& certificate_file, const std::string& key_file);

  // The handshake is still to come. The socket stays the caller's.
  TlsSession new_session(int socket) const;

 private:
  std::shared_ptr<ssl_ctx_st> context_;
};

class HttpSocket {
 public:
  enum class Status {
    done,
    wait_to_read,   // again once the socket is readable
    wait_to_write,  // again once it is writable
    closed,         // by the other side, or broken
  };
  struct Outcome {
    Status status = Status::closed;
    size_t size = 0;  // bytes, when done: at least 1
  };

  // The descriptor stays the caller's. Without a session: in the clear.
  HttpSocket(int descriptor, TlsSession session)
      : descriptor_(descriptor), session_(std::move(session)) {}

  // Of TLS; done at once without it.
  Status handshake();
  Outcome read(std::span<char> buffer);
  // As much as goes. After wait_to_*, the same bytes must come again, perhaps with more behind.
  Outcome write(std::string_view bytes);

  // Whether anything is there to read, without reading it: done, wait_to_read, or closed.
  Status peek();
  // The other side has closed or broken the connection, though there may be bytes left to read.
  bool has_hung_up() const;

  // Bytes written that the other side's kernel hasn't confirmed yet.
  int64_t num_unconfirmed() const;

  // Says that no more comes; false when that can't be said any longer.
  bool finish_writing();
  // Reads past TLS and throws away.
  Outcome discard(std::span<char> buffer) const;
  // Closing will drop what hasn't been sent and break the connection.
  void break_on_close() const;

 private:
  Outcome session_outcome(int result, size_t size) const;

  int descriptor_;
  TlsSession session_;
};

}  // namespace paceline
