// TLS of the server's side, by OpenSSL, over sockets that never block.
#pragma once

#include <memory>
#include <string>

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

}  // namespace paceline
