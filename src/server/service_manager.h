// ServiceManager is who started the process and wants to know how it is: systemd.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// Speaks the protocol of sd_notify(3): a datagram to the socket that NOTIFY_SOCKET names, a path
// or, with a leading "@", an abstract name. Without NOTIFY_SOCKET it says nothing.
class ServiceManager {
 public:
  ServiceManager();
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // "READY=1"; what can't be sent at once is dropped.
  void tell(std::string_view state) const;

 private:
  std::string address_;  // a sockaddr_un's bytes
  int socket_ = -1;
};

}  // namespace paceline
