#include "http/listener.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace paceline {
namespace {

constexpr int kBacklog = 4096;
// A slow client's socket takes so much ahead of what it has sent, and no more.
constexpr int kUnsentBytes = 128 << 10;

[[noreturn]] void throw_unusable(const std::string& address, int error) {
  std::string_view advice = "give another address";
  if (error == EADDRINUSE) advice = "another server listens there; stop it or give another port";
  if (error == EACCES) advice = "it needs a right that this user lacks; ports below 1024 often do";
  if (error == EADDRNOTAVAIL)
    advice = "no network interface here has it; 127.0.0.1 is always there";
  throw error_of(ErrorCode::invalid, "{}: can't listen: {}; {}", address, std::strerror(error),
                 advice);
}

std::string shown(const HttpAddress& address) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return is_v6 ? fmt::format("[{}]:{}", address.host, address.port)
               : fmt::format("{}:{}", address.host, address.port);
}

void set_option(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

// -1 with errno.
int bind_and_listen(int socket, const sockaddr* address, socklen_t size) {
  if (::bind(socket, address, size) != 0) return -1;
  return ::listen(socket, kBacklog);
}

OwnedDescriptor new_socket(int family) {
  return OwnedDescriptor(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

uint16_t bound_port(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  const auto port = address.ss_family == AF_INET6
                        ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                        : reinterpret_cast<const sockaddr_in&>(address).sin_port;
  return ntohs(port);
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses resolve(const HttpAddress& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(),
                                  std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) {
    throw error_of(ErrorCode::invalid,
                   "{}: not an address of this machine: {}; 127.0.0.1 "
                   "is for this machine alone, 0.0.0.0 for all",
                   shown(address), ::gai_strerror(error));
  }
  return {found, &freeaddrinfo};
}

void set_port(sockaddr* address, uint16_t port) {
  if (address->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(port);
  }
}

HttpListeners open_tcp(const HttpAddress& address) {
  const Addresses addresses = resolve(address);
  const bool several = addresses->ai_next != nullptr;
  HttpListeners listeners;
  int error = EADDRNOTAVAIL;
  for (const addrinfo* entry = addresses.get(); entry != nullptr; entry = entry->ai_next) {
    OwnedDescriptor socket = new_socket(entry->ai_family);
    set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (entry->ai_family == AF_INET6) {
      set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, several ? 1 : 0);
    }
    if (listeners.port != 0) set_port(entry->ai_addr, listeners.port);
    if (socket.get() < 0 || bind_and_listen(socket.get(), entry->ai_addr, entry->ai_addrlen) != 0) {
      error = errno;
      // A name may stand for addresses that this machine hasn't got.
      if (several && error != EADDRINUSE && error != EACCES) continue;
      throw_unusable(shown(address), error);
    }
    listeners.port = bound_port(socket.get());
    listeners.sockets.push_back(std::move(socket));
  }
  if (listeners.sockets.empty()) throw_unusable(shown(address), error);
  return listeners;
}

// Whether the file is a stale socket, left by a server that was killed.
bool is_abandoned(const sockaddr_un& address) {
  struct stat status {};
  if (::stat(address.sun_path, &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  const OwnedDescriptor probe = new_socket(AF_UNIX);
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
         errno == ECONNREFUSED;
}

HttpListeners open_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    throw error_of(ErrorCode::invalid, "{}: the path of a Unix socket has at most {} bytes", path,
                   sizeof address.sun_path - 1);
  }
  path.copy(address.sun_path, path.size());
  OwnedDescriptor socket = new_socket(AF_UNIX);
  const auto* const bound = reinterpret_cast<const sockaddr*>(&address);
  int result = bind_and_listen(socket.get(), bound, sizeof address);
  if (result != 0 && errno == EADDRINUSE && is_abandoned(address)) {
    ::unlink(path.c_str());
    result = bind_and_listen(socket.get(), bound, sizeof address);
  }
  if (result != 0) throw_unusable(path, errno);
  HttpListeners listeners{.file = SocketFile(path)};
  listeners.sockets.push_back(std::move(socket));
  return listeners;
}

std::string address_text(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(family, address, text.data(), text.size());
  return text.data();
}

HttpPeer peer_of_v4(const in_addr& address, uint16_t port) {
  const std::string text = address_text(AF_INET, &address);
  return {.name = fmt::format("{}:{}", text, port),
          .counted_as = text,
          .is_loopback = (ntohl(address.s_addr) >> 24) == 127};
}

HttpPeer peer_of_v6(const in6_addr& address, uint16_t port) {
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    in_addr mapped{};
    std::memcpy(&mapped, &address.s6_addr[12], sizeof mapped);
    return peer_of_v4(mapped, port);
  }
  // A host has a whole network of 64 bits to take addresses from.
  in6_addr network = address;
  std::memset(&network.s6_addr[8], 0, 8);
  return {.name = fmt::format("[{}]:{}", address_text(AF_INET6, &address), port),
          .counted_as = address_text(AF_INET6, &network),
          .is_loopback = IN6_IS_ADDR_LOOPBACK(&address) != 0};
}

}  // namespace

OwnedDescriptor::~OwnedDescriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int OwnedDescriptor::release() { return std::exchange(descriptor_, -1); }

void SocketFile::remove() {
  if (!path_.empty()) ::unlink(path_.c_str());
  path_.clear();
}

HttpListeners open_http_listeners(const HttpAddress& address) {
  return address.unix_socket.empty() ? open_tcp(address) : open_unix(address.unix_socket);
}

HttpPeer http_peer(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return peer_of_v4(v4.sin_addr, ntohs(v4.sin_port));
  }
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    return peer_of_v6(v6.sin6_addr, ntohs(v6.sin6_port));
  }
  return {.name = "unix", .counted_as = "unix", .is_loopback = true};
}

AcceptedSocket accept_http(int listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  const int descriptor = ::accept4(listener, reinterpret_cast<sockaddr*>(&address), &size,
                                   SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (descriptor < 0) return {.error = errno};
  if (address.ss_family != AF_UNIX) {
    set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsentBytes);
    set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  }
  OwnedDescriptor owned(descriptor);  // should naming the peer throw
  AcceptedSocket accepted{.peer = http_peer(address)};
  accepted.descriptor = owned.release();
  return accepted;
}

}  // namespace paceline
