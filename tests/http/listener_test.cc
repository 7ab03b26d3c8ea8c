#include "http/listener.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/expect_error.h"

namespace paceline {
namespace {

HttpPeer peer_v4(const char* text) {
  sockaddr_storage address{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  v4.sin_family = AF_INET;
  v4.sin_port = htons(80);
  ::inet_pton(AF_INET, text, &v4.sin_addr);
  return http_peer(address);
}

HttpPeer peer_v6(const char* text) {
  sockaddr_storage address{};
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(80);
  ::inet_pton(AF_INET6, text, &v6.sin6_addr);
  return http_peer(address);
}

TEST(HttpPeer, IsNamedAndCounted) {
  EXPECT_EQ(peer_v4("192.0.2.1").name, "192.0.2.1:80");
  EXPECT_EQ(peer_v4("192.0.2.1").counted_as, "192.0.2.1");
  EXPECT_FALSE(peer_v4("192.0.2.1").is_loopback);
  EXPECT_TRUE(peer_v4("127.0.0.1").is_loopback);
  EXPECT_TRUE(peer_v4("127.8.9.10").is_loopback);
  EXPECT_EQ(peer_v6("2001:db8::1").name, "[2001:db8::1]:80");
  EXPECT_TRUE(peer_v6("::1").is_loopback);
  EXPECT_FALSE(peer_v6("2001:db8::1").is_loopback);
  sockaddr_storage local{};
  local.ss_family = AF_UNIX;
  EXPECT_EQ(http_peer(local).name, "unix");
  EXPECT_TRUE(http_peer(local).is_loopback);
}

TEST(HttpPeer, CountsForItsNetworkInIpv6) {
  EXPECT_EQ(peer_v6("2001:db8:1:2::1").counted_as, peer_v6("2001:db8:1:2:ffff::9").counted_as);
  EXPECT_NE(peer_v6("2001:db8:1:2::1").counted_as, peer_v6("2001:db8:1:3::1").counted_as);
}

TEST(HttpPeer, AnIpv4AddressInIpv6IsAnIpv4Address) {
  EXPECT_EQ(peer_v6("::ffff:192.0.2.1").name, "192.0.2.1:80");
  EXPECT_TRUE(peer_v6("::ffff:127.0.0.1").is_loopback);
}

std::vector<std::string> addresses_of(const char* name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  EXPECT_EQ(::getaddrinfo(name, nullptr, &hints, &found), 0);
  std::vector<std::string> addresses;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    sockaddr_storage address{};
    std::memcpy(&address, entry->ai_addr, entry->ai_addrlen);
    addresses.push_back(http_peer(address).counted_as);
  }
  ::freeaddrinfo(found);
  return addresses;
}

TEST(HttpListeners, EveryAddressOfANameListensAtOnePort) {
  const HttpListeners listeners = open_http_listeners({.host = "localhost", .port = 0});
  ASSERT_FALSE(listeners.sockets.empty());
  const auto addresses = addresses_of("localhost");
  for (const OwnedDescriptor& listener : listeners.sockets) {
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &size), 0);
    const HttpPeer own = http_peer(bound);
    EXPECT_TRUE(own.name.ends_with(":" + std::to_string(listeners.port))) << own.name;
    EXPECT_THAT(addresses, testing::Contains(own.counted_as));
    const OwnedDescriptor client(::socket(bound.ss_family, SOCK_STREAM, 0));
    ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&bound), size), 0) << own.name;
    const AcceptedSocket accepted = accept_http(listener.get());
    const OwnedDescriptor server(accepted.descriptor);
    EXPECT_GE(accepted.descriptor, 0) << own.name << ": errno " << accepted.error;
    EXPECT_EQ(accepted.peer.counted_as, own.counted_as);
  }
}

TEST(HttpListeners, ASecondServerAtOneAddressIsRefused) {
  const HttpListeners first = open_http_listeners({.host = "127.0.0.1", .port = 0});
  expect_error(ErrorCode::invalid, {"127.0.0.1:" + std::to_string(first.port), "another server"},
               [&] { open_http_listeners({.host = "127.0.0.1", .port = first.port}); });
}

}  // namespace
}  // namespace paceline
