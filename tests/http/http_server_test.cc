#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>

#include "tests/expect_error.h"
#include "tests/http/http_fixture.h"

namespace paceline {
namespace {

using testing::HasSubstr;
using testing::Not;

class HttpServerTest : public HttpFixture {};

TEST_F(HttpServerTest, AnswersOnOneConnectionAgainAndAgain) {
  start();
  RawHttpClient client = connect();
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(client.send(post("/echo?a=1", "body " + std::to_string(i))));
    const RawAnswer answer = client.read_answer();
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "POST /echo?a=1 body " + std::to_string(i));
    EXPECT_EQ(answer.header("Content-Type"), "text/plain");
    EXPECT_EQ(answer.header("Connection"), "");
    EXPECT_EQ(answer.header("Server"), "");
    EXPECT_EQ(answer.header("Date").size(), 29u);
  }
  const HttpCounters counters = server_->counters();
  EXPECT_EQ(counters.accepted, 1);
  EXPECT_EQ(counters.connections, 1);
  EXPECT_EQ(counters.requests, 40);
  EXPECT_EQ(counters.malformed, 0);
}

// A wall clock that says what it is told.
class HeldTime final : public TimeSource {
 public:
  std::chrono::steady_clock::time_point now() const override { return machine_time().now(); }
  std::chrono::system_clock::time_point wall_time() const override {
    return std::chrono::system_clock::time_point(seconds.load());
  }
  std::atomic<std::chrono::seconds> seconds{};
};

TEST_F(HttpServerTest, DatesAreOfTheGivenTime) {
  HeldTime time;
  const TimeOverride overriding(time);
  start();
  EXPECT_EQ(ask(get("/echo")).header("Date"), "Thu, 01 Jan 1970 00:00:00 GMT");
  time.seconds = std::chrono::seconds(784111777);
  EXPECT_EQ(ask(get("/echo")).header("Date"), "Sun, 06 Nov 1994 08:49:37 GMT");
  stop();
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  start();
  RawHttpClient client = connect();
  std::string requests;
  for (int i = 0; i < 100; ++i) requests += post("/echo", std::to_string(i));
  requests.insert(requests.size() / 2, "");
  ASSERT_TRUE(client.send(requests));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(client.read_answer().body, "POST /echo? " + std::to_string(i));
  }
}

TEST_F(HttpServerTest, APipelinedRequestWaitsForTheAnswerBefore) {
  start();
  RawHttpClient client = connect();
  client.send(get("/hold") + get("/echo"));
  const auto held = next_held();
  client.send(get("/second"));  // behind the back of who watches for a disconnect
  EXPECT_FALSE(client.is_closed(60ms));
  EXPECT_FALSE(is_closed(*held));
  on_io([&] { held->exchange->respond({.body = "first"}); });
  EXPECT_EQ(client.read_answer().body, "first");
  EXPECT_EQ(client.read_answer().body, "GET /echo? ");
  EXPECT_EQ(client.read_answer().body, "GET /second? ");
}

TEST_F(HttpServerTest, TakesARequestByteByByte) {
  start();
  RawHttpClient client = connect();
  for (const char c : post("/echo", "slow")) client.send({&c, 1});
  EXPECT_EQ(client.read_answer().body, "POST /echo? slow");
}

TEST_F(HttpServerTest, TakesAChunkedBody) {
  start();
  const RawAnswer answer =
      ask("POST /echo HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
          "5\r\nhello\r\n6;x=\"y\"\r\n world\r\n0\r\nHost: other\r\n\r\n");
  EXPECT_EQ(answer.body, "POST /echo? hello world");
}

TEST_F(HttpServerTest, DecodesThePath) {
  start();
  EXPECT_EQ(ask(get("/a%20b%C3%A9?q=%20")).body, "GET /a b\xC3\xA9?q=%20 ");
  EXPECT_EQ(ask(get("http://else.where/echo")).body, "GET /echo? ");
}

TEST_F(HttpServerTest, AnswersHeadWithoutTheBody) {
  start();
  RawHttpClient client = connect();
  client.send("HEAD /echo HTTP/1.1\r\nHost: here\r\n\r\n");
  const RawAnswer answer = client.read_answer_to_head();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("Content-Length"), "11");
  client.send("HEAD /hold HTTP/1.1\r\nHost: here\r\n\r\n");
  const auto held = next_held();
  on_io([&] {
    held->exchange->begin({.body = "a"});
    held->exchange->write("b");
    held->exchange->end();
  });
  EXPECT_EQ(client.read_answer_to_head().header("Transfer-Encoding"), "chunked");
  client.send(get("/echo"));
  EXPECT_EQ(client.read_answer().body, "GET /echo? ");
}

TEST_F(HttpServerTest, ServesHttp10) {
  start();
  RawHttpClient client = connect();
  client.send("GET /echo HTTP/1.0\r\n\r\n");
  RawAnswer answer = client.read_answer();
  EXPECT_EQ(answer.body, "GET /echo? ");
  EXPECT_EQ(answer.header("Connection"), "close");
  EXPECT_TRUE(client.is_closed());

  RawHttpClient kept = connect();
  for (int i = 0; i < 2; ++i) {
    kept.send("GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    answer = kept.read_answer();
    EXPECT_EQ(answer.body, "GET /echo? ");
    EXPECT_EQ(answer.header("Connection"), "keep-alive");
  }
  // Without chunks the body ends with the connection.
  kept.send("GET /hold HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const auto held = next_held();
  on_io([&] {
    held->exchange->begin({.body = "one "});
    held->exchange->write("two");
    held->exchange->end();
  });
  answer = kept.read_answer();
  EXPECT_EQ(answer.body, "one two");
  EXPECT_EQ(answer.header("Transfer-Encoding"), "");
  EXPECT_EQ(answer.header("Connection"), "close");
}

TEST_F(HttpServerTest, HonoursConnectionClose) {
  start();
  RawHttpClient client = connect();
  client.send("GET /echo HTTP/1.1\r\nHost: here\r\nConnection: x, Close\r\n\r\n");
  EXPECT_EQ(client.read_answer().header("Connection"), "close");
  EXPECT_TRUE(client.is_closed());

  RawHttpClient other = connect();
  other.send(get("/hold"));
  const auto held = next_held();
  on_io([&] { held->exchange->respond({.body = "x", .close = true}); });
  EXPECT_EQ(other.read_answer().header("Connection"), "close");
  EXPECT_TRUE(other.is_closed());
}

TEST_F(HttpServerTest, TheGateRefusesBeforeTheBodyIsRead) {
  start();
  RawHttpClient client = connect();
  client.send("POST /refused HTTP/1.1\r\nHost: here\r\nContent-Length: 1000000\r\n\r\n");
  const RawAnswer answer = client.read_answer();
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.body, "full");
  EXPECT_EQ(answer.header("Connection"), "close");
  client.close();
  // The client that sends all of it first gets its answer too.
  RawHttpClient eager = connect();
  eager.send(post("/refused", std::string(4 << 20, 'x')));
  EXPECT_EQ(eager.read_answer().status, 429);
  EXPECT_EQ(server_->counters().requests, 2);
  EXPECT_EQ(num_gates_, 0);
}

TEST_F(HttpServerTest, SaysContinueAfterTheGateOnly) {
  start();
  RawHttpClient client = connect();
  const std::string head =
      " HTTP/1.1\r\nHost: here\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
  client.send("POST /echo" + head);
  EXPECT_EQ(client.read_head().head, "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("body");
  EXPECT_EQ(client.read_answer().body, "POST /echo? body");
  client.send("POST /refused" + head);
  EXPECT_EQ(client.read_answer().status, 429);
}

TEST_F(HttpServerTest, NothingThatAHandlerDoesBringsItDown) {
  start();
  EXPECT_EQ(ask(get("/throw")).status, 0);
  EXPECT_EQ(ask(get("/drop")).status, 0);
  EXPECT_EQ(ask(get("/echo")).status, 200);
  RawHttpClient client = connect();
  client.send(get("/hold"));
  const auto held = next_held();
  on_io([&] {
    held->exchange->respond({.body = "once"});
    held->exchange->respond({.body = "twice"});
    held->exchange->begin({});
    held->exchange->write("x");
    held->exchange->end();
    held->exchange->abort();
    EXPECT_FALSE(held->exchange->is_open());
  });
  EXPECT_EQ(client.read_answer().body, "once");
  client.send(get("/hold"));
  const auto unbegun = next_held();
  on_io([&] { unbegun->exchange->end(); });
  EXPECT_TRUE(client.is_closed());
}

TEST_F(HttpServerTest, AHeaderCannotBreakOutOfItsLine) {
  start();
  RawHttpClient client = connect();
  client.send(get("/hold"));
  const auto held = next_held();
  on_io([&] { held->exchange->respond({.headers = {{"x-request-id", "a\r\nSet-Cookie: b"}}}); });
  const RawAnswer answer = client.read_answer();
  EXPECT_EQ(answer.header("x-request-id"), "a  Set-Cookie: b");
  EXPECT_EQ(answer.header("Set-Cookie"), "");
}

TEST_F(HttpServerTest, ListensOnAUnixSocket) {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("paceline_http_" + std::to_string(::getpid()) + ".sock");
  start({.unix_socket = path});
  EXPECT_EQ(server_->port(), 0);
  RawHttpClient client = RawHttpClient::to_unix(path);
  client.send(get("/hold"));
  const auto held = next_held();
  EXPECT_EQ(held->exchange->request().peer, "unix");
  EXPECT_TRUE(held->exchange->request().is_loopback);
  const auto since = std::chrono::steady_clock::now();
  client.close();
  expect_noticed(*held, since);
  expect_error(ErrorCode::invalid, {path, "in use"},
               [&] { make_http_server({.unix_socket = path}, limits_, {}); });
  stop();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(HttpServerTest, TakesOverAnAbandonedUnixSocketOnly) {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("paceline_old_" + std::to_string(::getpid()) + ".sock");
  {
    const auto other = make_http_server({.unix_socket = path}, limits_, {});
    std::filesystem::rename(path, path + ".kept");
  }
  std::filesystem::rename(path + ".kept", path);
  start({.unix_socket = path});
  RawHttpClient client = RawHttpClient::to_unix(path);
  client.send(get("/echo"));
  EXPECT_EQ(client.read_answer().status, 200);
  stop();
  std::filesystem::create_directory(path);
  expect_error(ErrorCode::invalid, {path},
               [&] { make_http_server({.unix_socket = path}, limits_, {}); });
  std::filesystem::remove(path);
}

TEST_F(HttpServerTest, SaysWhyItCannotListen) {
  start();
  expect_error(ErrorCode::invalid, {"127.0.0.1:", "in use"},
               [&] { make_http_server({.port = server_->port()}, limits_, {}); });
  expect_error(ErrorCode::invalid, {"no.such.host.invalid:0"},
               [&] { make_http_server({.host = "no.such.host.invalid", .port = 0}, limits_, {}); });
  expect_error(ErrorCode::invalid, {"198.51.100.7:0"},
               [&] { make_http_server({.host = "198.51.100.7", .port = 0}, limits_, {}); });
}

TEST_F(HttpServerTest, TakesPostsFromManyThreads) {
  start();
  std::atomic<int> count{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 2000; ++k) server_->post([&] { ++count; });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(eventually([&] { return count == 8000; }));
}

// Its client takes all of it; the loop serves others after each mebibyte.
TEST_F(HttpServerTest, SendsALargeAnswerInPieces) {
  start();
  RawHttpClient client = connect();
  client.send(get("/hold"));
  const auto held = next_held();
  const std::string body(64 << 20, 'x');
  std::atomic<size_t> most_at_once{0};
  size_t left = 0;
  std::function<void()> look = [&] {
    const size_t now = held->exchange->buffered_bytes();
    most_at_once = std::max(most_at_once.load(), left - now);
    left = now;
    if (now > 0) server_->post(look);
  };
  on_io([&] {
    held->exchange->respond({.body = body});
    left = held->exchange->buffered_bytes();
    server_->post(look);
  });
  const RawAnswer answer = client.read_answer();
  EXPECT_EQ(answer.body.size(), body.size());
  EXPECT_TRUE(eventually([&] { return server_->counters().unsent_bytes == 0; }));
  on_io([] {});
  EXPECT_GT(most_at_once, 0u);
  EXPECT_LE(most_at_once, 2u << 20);
}

TEST_F(HttpServerTest, CallsBackAfterATime) {
  start();
  std::promise<void> done;
  const auto since = std::chrono::steady_clock::now();
  on_io([&] {
    server_->after(20ms, [&] { done.set_value(); });
    server_->after(1h, [] { FAIL(); });
  });
  done.get_future().get();
  EXPECT_GE(std::chrono::steady_clock::now() - since, 20ms);
}

TEST_F(HttpServerTest, DrainsConnections) {
  start();
  RawHttpClient idle = connect();
  idle.send(get("/echo"));
  idle.read_answer();
  RawHttpClient busy = connect();
  busy.send(get("/hold"));
  const auto held = next_held();
  RawHttpClient half = connect();
  half.send("GET /echo HTTP/1.1\r\nHo");
  RawHttpClient silent = connect();
  ASSERT_TRUE(eventually([&] { return server_->counters().connections == 4; }));
  on_io([&] { server_->close_listeners(); });
  EXPECT_FALSE(connect().is_connected());
  EXPECT_TRUE(idle.is_closed());
  EXPECT_TRUE(silent.is_closed());
  half.send("st: here\r\n\r\n");
  const RawAnswer answer = half.read_answer();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("Connection"), "close");
  EXPECT_TRUE(half.is_closed());
  on_io([&] { held->exchange->respond({.body = "late"}); });
  EXPECT_EQ(busy.read_answer().body, "late");
  EXPECT_TRUE(busy.is_closed());
}

TEST_F(HttpServerTest, StopCutsOpenStreams) {
  start();
  std::vector<RawHttpClient> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(connect());
    clients.back().send(get("/hold"));
    const auto held = next_held();
    if (i % 2 == 0) {
      on_io([&] { held->exchange->begin({.body = "x"}); });
    }
  }
  const auto since = std::chrono::steady_clock::now();
  stop();
  EXPECT_LT(std::chrono::steady_clock::now() - since, 500ms);
  for (RawHttpClient& client : clients) EXPECT_TRUE(client.is_closed());
  for (const auto& held : held_) {
    EXPECT_EQ(held->num_closed, 1);
    EXPECT_FALSE(held->exchange->is_open());
    held->exchange->write("dropped");
    held->exchange->end();
  }
}

TEST_F(HttpServerTest, MayBeStoppedBeforeItRuns) {
  server_ = make_http_server({.port = 0}, limits_, {});
  server_->stop();
  server_->run();
  server_ = make_http_server({.port = 0}, limits_, {});  // or never run
}

TEST_F(HttpServerTest, ServesFiveHundredConnectionsAtOnce) {
  start();
  std::vector<RawHttpClient> clients;
  for (int i = 0; i < 500; ++i) {
    clients.push_back(connect());
    ASSERT_TRUE(clients.back().send(get("/hold")));
  }
  for (int i = 0; i < 500; ++i) next_held();
  EXPECT_EQ(server_->counters().connections, 500);
  on_io([&] {
    for (const auto& held : held_) held->exchange->begin({});
  });
  for (int event = 0; event < 5; ++event) {
    on_io([&] {
      for (const auto& held : held_) held->exchange->write("event;");
    });
  }
  on_io([&] {
    for (const auto& held : held_) held->exchange->end();
  });
  for (RawHttpClient& client : clients) {
    EXPECT_EQ(client.read_answer().body, "event;event;event;event;event;");
  }
}

}  // namespace
}  // namespace paceline
