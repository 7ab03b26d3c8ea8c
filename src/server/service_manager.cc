#include "server/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace paceline {

ServiceManager::ServiceManager() {
  const char* const name = std::getenv("NOTIFY_SOCKET");  // NOLINT(concurrency-mt-unsafe)
  sockaddr_un address{};
  const size_t size = name == nullptr ? 0 : std::strlen(name);
  if (size < 2 || size >= sizeof(address.sun_path)) return;
  if (name[0] != '/' && name[0] != '@') return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name, size);
  if (name[0] == '@') address.sun_path[0] = '\0';
  address_.assign(reinterpret_cast<const char*>(&address), offsetof(sockaddr_un, sun_path) + size);
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

ServiceManager::~ServiceManager() {
  if (socket_ >= 0) ::close(socket_);
}

void ServiceManager::notify(std::string_view state) const {
  if (socket_ < 0) return;
  ::sendto(socket_, state.data(), state.size(), MSG_NOSIGNAL,
           reinterpret_cast<const sockaddr*>(address_.data()),
           static_cast<socklen_t>(address_.size()));
}

}  // namespace paceline
