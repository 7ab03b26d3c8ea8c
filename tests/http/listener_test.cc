#include "http/listener.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/un.h>

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

TEST(HttpListeners, ANameMayBeSeveralAddresses) {
  const HttpListeners listeners = open_http_listeners({.host = "localhost", .port = 0});
  EXPECT_GE(listeners.sockets.size(), 1u);
  EXPECT_NE(listeners.port, 0);
}

}  // namespace
}  // namespace paceline
