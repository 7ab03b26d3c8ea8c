#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ctime>

#include "tests/http/http_fixture.h"

namespace paceline {
namespace {

using testing::HasSubstr;

class HttpLimitsTest : public HttpFixture {
 protected:
  // The status of the wire's own answer, which closes the connection.
  int refused(const std::string& request) {
    RawHttpClient client = connect();
    client.send(request);
    const RawAnswer answer = client.read_answer();
    EXPECT_EQ(answer.header("Connection"), "close") << request.substr(0, 60);
    EXPECT_THAT(answer.body, HasSubstr("\"status\":" + std::to_string(answer.status)));
    EXPECT_TRUE(client.is_closed()) << request.substr(0, 60);
    return answer.status;
  }
};

TEST_F(HttpLimitsTest, RefusesTooMuch) {
  limits_.max_uri_bytes = 100;
  limits_.max_header_line_bytes = 200;
  limits_.max_header_bytes = 400;
  limits_.max_header_fields = 10;
  limits_.max_body_bytes = 1000;
  start();
  const auto with = [](const std::string& headers) {
    return "GET /echo HTTP/1.1\r\nHost: h\r\n" + headers + "\r\n";
  };
  const std::string chunked =
      "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(ask(get("/" + std::string(99, 'a'))).status, 200);
  EXPECT_EQ(refused(get("/" + std::string(100, 'a'))), 414);
  EXPECT_EQ(ask(with("a: " + std::string(197, 'x') + "\r\n")).status, 200);
  EXPECT_EQ(refused(with("a: " + std::string(198, 'x') + "\r\n")), 431);
  EXPECT_EQ(refused(with("a: " + std::string(190, 'x') + "\r\nb: " + std::string(190, 'x') +
                         "\r\nc: d\r\n")),
            431);
  std::string fields;
  for (int i = 0; i < 9; ++i) fields += "f" + std::to_string(i) + ": x\r\n";
  EXPECT_EQ(ask(with(fields)).status, 200);
  EXPECT_EQ(refused(with(fields + "one: more\r\n")), 431);
  EXPECT_EQ(ask(post("/echo", std::string(1000, 'x'))).status, 200);
  EXPECT_EQ(refused(post("/echo", std::string(1001, 'x'))), 413);
  EXPECT_EQ(refused(chunked + "3e8\r\n" + std::string(1000, 'x') + "\r\n1\r\nx\r\n0\r\n\r\n"), 413);
  EXPECT_EQ(refused(chunked + "ffffffffffffffff\r\n"), 413);
  EXPECT_EQ(server_->counters().malformed, 7);
}

TEST_F(HttpLimitsTest, RefusesWhatTwoReadersMightReadDifferently) {
  start();
  const std::string line = "POST /echo HTTP/1.1\r\n";
  const std::string host = line + "Host: h\r\n";
  const std::string chunked = host + "Transfer-Encoding: chunked\r\n";
  const std::vector<std::string> requests = {
      host + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      host + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
      host + "Content-Length: 4\r\nContent-Length: 4\r\n\r\nbody",
      host + "Content-Length: 4\r\ncontent-length: 5\r\n\r\nbody",
      host + "Content-Length: 4, 4\r\n\r\nbody",
      host + "Content-Length: +4\r\n\r\nbody",
      host + "Content-Length: -1\r\n\r\n",
      host + "Content-Length: 0x4\r\n\r\nbody",
      host + "Content-Length:\r\n\r\n",
      chunked + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      host + "Transfer-Encoding: identity\r\n\r\n",
      host + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      host + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
      host + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
      host +
          "Transfer-Encoding:\x0b"
          "chunked\r\n\r\n0\r\n\r\n",
      "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      host + "a: b\r\n c\r\n\r\n",
      line + " Host: h\r\n\r\n",
      host + "a: b\nc: d\r\n\r\n",
      host + "a: b\rc: d\r\n\r\n",
      line + "Host: h\n\n",
      host + std::string("a: b\0c\r\n\r\n", 10),
      std::string("GET /e\0 HTTP/1.1\r\nHost: h\r\n\r\n", 29),
      line + "\r\n",
      host + "Host: h\r\n\r\n",
      host + ": x\r\n\r\n",
      host + "no colon\r\n\r\n",
      host + "na me: x\r\n\r\n",
      "GET /echo\r\n\r\n",
      "GET /echo HTTP/2.0\r\nHost: h\r\n\r\n",
      "GET /echo HTTP/1.2\r\nHost: h\r\n\r\n",
      "GET /echo http/1.1\r\nHost: h\r\n\r\n",
      "GET  /echo HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET /echo  HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET /echo HTTP/1.1 \r\nHost: h\r\n\r\n",
      " GET /echo HTTP/1.1\r\nHost: h\r\n\r\n",
      "G(T /echo HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET echo HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET /ec\xc3\xa9 HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET /e%zz HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET /e%0d%0a HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET /e%00 HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET /e%ff HTTP/1.1\r\nHost: h\r\n\r\n",
      "CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "\x16\x03\x01\x02\x01\r\n\r\n",
      chunked + "\r\n-2\r\n",
      chunked + "\r\nx\r\n",
      chunked + "\r\n\r\n",
      chunked + "\r\n 1\r\nx\r\n0\r\n\r\n",
      chunked + "\r\n1 \r\nx\r\n0\r\n\r\n",
      chunked + "\r\n0x1\r\nx\r\n0\r\n\r\n",
      chunked + "\r\n1\nx\r\n0\r\n\r\n",
      chunked + "\r\n1\r\nxy\r\n0\r\n\r\n",
      chunked + "\r\n1\r\nx\n0\r\n\r\n",
      chunked + "\r\n1;" + std::string(300, 'e') + "\r\nx\r\n0\r\n\r\n",
      chunked + "\r\n0\r\nno colon\r\n\r\n",
      chunked + "\r\n0\r\na: b\n\r\n\r\n",
  };
  for (const std::string& request : requests) EXPECT_EQ(refused(request), 400) << request;
  EXPECT_EQ(server_->counters().malformed, static_cast<int64_t>(requests.size()));
}

TEST_F(HttpLimitsTest, WaitsSoLongForAHeader) {
  limits_.header_time = 60ms;
  limits_.keep_alive_time = 150ms;
  start();
  RawHttpClient silent = connect();
  EXPECT_TRUE(silent.is_closed());
  EXPECT_EQ(refused("GET /echo HT"), 408);
  RawHttpClient client = connect();
  client.send(get("/echo"));
  client.read_answer();
  const auto since = std::chrono::steady_clock::now();
  EXPECT_TRUE(client.is_closed());  // idle
  EXPECT_GE(std::chrono::steady_clock::now() - since, 140ms);
  RawHttpClient slow = connect();
  slow.send(get("/echo"));
  slow.read_answer();
  slow.send("GET");
  EXPECT_EQ(slow.read_answer().status, 408);
  EXPECT_EQ(server_->counters().malformed, 2);
}

TEST_F(HttpLimitsTest, WaitsSoLongForABody) {
  limits_.body_time = 80ms;
  limits_.body_grace = 80ms;
  start();
  RawHttpClient client = connect();
  client.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n123");
  EXPECT_EQ(client.read_answer().status, 408);
  EXPECT_TRUE(eventually([&] { return num_permits_ == 0; }));
}

TEST_F(HttpLimitsTest, ExpectsAKilobyteASecond) {
  limits_.body_time = 5s;
  limits_.body_grace = 50ms;
  start();
  // 300 bytes are worth 293 ms more.
  RawHttpClient client = connect();
  const auto since = std::chrono::steady_clock::now();
  client.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9000\r\n\r\n" +
              std::string(300, 'x'));
  EXPECT_EQ(client.read_answer().status, 408);
  const auto taken = std::chrono::steady_clock::now() - since;
  EXPECT_GE(taken, 300ms);
  EXPECT_LT(taken, 2s);
}

TEST_F(HttpLimitsTest, TurnsConnectionsAwayOverTheTotal) {
  limits_.max_connections = 3;
  start();
  std::vector<RawHttpClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(connect());
    clients.back().send(get("/echo"));
    EXPECT_EQ(clients.back().read_answer().status, 200);
  }
  EXPECT_EQ(refused(get("/echo")), 503);
  EXPECT_EQ(server_->counters().connections, 3);
  clients.pop_back();
  ASSERT_TRUE(eventually([&] { return server_->counters().connections == 2; }));
  EXPECT_EQ(ask(get("/echo")).status, 200);
}

// The IPv4 address of an interface other than the loopback; "" without one.
std::string address_of_machine() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return "";
  std::string found;
  for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    const auto& address = reinterpret_cast<const sockaddr_in&>(*entry->ifa_addr).sin_addr;
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &address, text, sizeof text);
    if (ntohl(address.s_addr) >> 24 != 127) found = text;
  }
  ::freeifaddrs(all);
  return found;
}

TEST_F(HttpLimitsTest, TurnsConnectionsAwayOverAnAddressesShare) {
  const std::string address = address_of_machine();
  if (address.empty()) GTEST_SKIP() << "this machine has the loopback interface only";
  limits_.max_connections_per_address = 2;
  start({.host = "0.0.0.0", .port = 0});
  std::vector<RawHttpClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(server_->port(), address);
    clients.back().send(get("/echo"));
    EXPECT_EQ(clients.back().read_answer().status, i < 2 ? 200 : 503);
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(ask(get("/echo")).status, 200);  // loopback is exempt
  clients.clear();
  ASSERT_TRUE(eventually([&] { return server_->counters().connections == 0; }));
  RawHttpClient client(server_->port(), address);
  client.send(get("/hold"));
  const auto held = next_held();
  EXPECT_FALSE(held->exchange->request().is_loopback);
  EXPECT_THAT(held->exchange->request().peer, testing::StartsWith(address + ":"));
}

// Lowers the limit on descriptors for as long as it lives.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t limit) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit lower = before_;
    lower.rlim_cur = limit;
    ::setrlimit(RLIMIT_NOFILE, &lower);
  }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST_F(HttpLimitsTest, PausesWhenDescriptorsRunOut) {
  start();
  ASSERT_EQ(ask(get("/echo")).status, 200);
  std::vector<RawHttpClient> clients;
  {
    const DescriptorLimit limit(100);  // accepting ends at 95
    for (int i = 0; i < 47; ++i) {
      clients.push_back(connect());
      if (!clients.back().is_connected()) break;
      clients.back().send(get("/echo"));
    }
    std::vector<int> taken;  // the rest: accept() itself fails now
    for (int descriptor = ::dup(0); descriptor >= 0; descriptor = ::dup(0)) {
      taken.push_back(descriptor);
    }
    const double before = cpu_seconds();
    std::this_thread::sleep_for(150ms);
    EXPECT_LT(cpu_seconds() - before, 0.05);
    for (const int descriptor : taken) ::close(descriptor);
  }
  for (RawHttpClient& client : clients) EXPECT_EQ(client.read_answer().status, 200);
}

}  // namespace
}  // namespace paceline
