// ServiceManager notifies the service manager that started the process: systemd.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// Speaks the protocol of sd_notify(3): a datagram to the socket that NOTIFY_SOCKET names, a path
// or, with a leading "@", an abstract name. Without NOTIFY_SOCKET it sends nothing.
class ServiceManager {
 public:
  ServiceManager();
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // "READY=1"; dropped if it can't be sent at once.
  void notify(std::string_view state) const;

 private:
  std::string address_;  // a sockaddr_un's bytes
  int socket_ = -1;
};

}  // namespace paceline
