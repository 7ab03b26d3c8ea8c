// Sockets that listen for the server, and who came through them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "http/http.h"

struct sockaddr_storage;

namespace paceline {

// A descriptor of the operating system, closed with its owner.
class OwnedDescriptor {
 public:
  explicit OwnedDescriptor(int descriptor) : descriptor_(descriptor) {}
  OwnedDescriptor(OwnedDescriptor&& other) noexcept : descriptor_(other.release()) {}
  OwnedDescriptor& operator=(OwnedDescriptor&&) = delete;
  ~OwnedDescriptor();

  int get() const { return descriptor_; }
  int release();

 private:
  int descriptor_;
};

// The file of a Unix socket, removed with its owner.
class SocketFile {
 public:
  SocketFile() = default;
  explicit SocketFile(std::string path) : path_(std::move(path)) {}
  SocketFile(SocketFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  SocketFile& operator=(SocketFile&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~SocketFile() { remove(); }

  void remove();

 private:
  std::string path_;  // empty: none
};

struct HttpListeners {
  std::vector<OwnedDescriptor> sockets;  // one for each address of the name
  uint16_t port = 0;                     // 0 for a Unix socket
  SocketFile file = {};
};

// Binds and listens, without blocking. Throws Error invalid as make_http_server() says.
HttpListeners open_http_listeners(const HttpAddress& address);

struct HttpPeer {
  std::string name;        // "127.0.0.1:41522", "[::1]:41522" or "unix"
  std::string counted_as;  // whom it counts for: its address, of IPv6 the network of 64 bits
  bool is_loopback = false;
};

HttpPeer http_peer(const sockaddr_storage& address);

struct AcceptedSocket {
  int descriptor = -1;  // -1: none
  int error = 0;        // errno of accept() then
  HttpPeer peer = {};
};

AcceptedSocket accept_http(int listener);

}  // namespace paceline
