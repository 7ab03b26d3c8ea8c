#include "server/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace paceline {
namespace {

// A manager's socket under an abstract name, as systemd-run uses one.
class ServiceManagerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    name_ = "@paceline-test-" + std::to_string(::getpid());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name_.data() + 1, name_.size() - 1);
    socket_ = ::socket(AF_UNIX, SOCK_DGRAM, 0);
    ASSERT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address),
                     static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size())),
              0);
  }
  void TearDown() override {
    ::close(socket_);
    ::unsetenv("NOTIFY_SOCKET");
  }

  std::string heard() const {
    std::string text(64, '\0');
    const ssize_t size = ::recv(socket_, text.data(), text.size(), MSG_DONTWAIT);
    return text.substr(0, size < 0 ? 0 : static_cast<size_t>(size));
  }

  std::string name_;
  int socket_ = -1;
};

TEST_F(ServiceManagerTest, IsToldWhenThereIsOne) {
  ::setenv("NOTIFY_SOCKET", name_.c_str(), 1);
  const ServiceManager manager;
  manager.notify("READY=1");
  manager.notify("WATCHDOG=1");
  EXPECT_EQ(heard(), "READY=1");
  EXPECT_EQ(heard(), "WATCHDOG=1");
}

TEST_F(ServiceManagerTest, NobodyIsToldWithoutOne) {
  for (const char* const name : {"", "@", "relative", "/no/such/socket"}) {
    ::setenv("NOTIFY_SOCKET", name, 1);
    ServiceManager().notify("READY=1");
  }
  ::unsetenv("NOTIFY_SOCKET");
  ServiceManager().notify("READY=1");
  EXPECT_EQ(heard(), "");
}

TEST_F(ServiceManagerTest, NobodyWaitsForAManagerThatDoesNotRead) {
  ::setenv("NOTIFY_SOCKET", name_.c_str(), 1);
  const ServiceManager manager;
  for (int i = 0; i < 5000; ++i) manager.notify("WATCHDOG=1");
  EXPECT_EQ(heard(), "WATCHDOG=1");
}

}  // namespace
}  // namespace paceline
