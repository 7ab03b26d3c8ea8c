// HttpFixture: a server on a free port whose handler answers /echo itself and holds /hold for the
// test.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "http/http.h"
#include "tests/http/http_client.h"

namespace paceline {

using namespace std::chrono_literals;

inline std::string get(std::string_view path) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: here\r\n\r\n";
}

inline std::string post(std::string_view path, std::string_view body,
                        std::string_view headers = "") {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: here\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         std::string(headers) + "\r\n" + std::string(body);
}

// What one exchange has seen; its members are read and written under the fixture's lock.
struct HeldExchange {
  std::shared_ptr<HttpExchange> exchange;
  int num_closed = 0;
  std::chrono::steady_clock::time_point closed_at{};
};

class HttpFixture : public ::testing::Test {
 protected:
  void start() { start(HttpAddress{.port = 0}); }
  void start(const HttpAddress& address) {
    HttpHandler handler;
    handler.gate = [this](const HttpRequest& head) { return gate(head); };
    handler.handle = [this](std::shared_ptr<HttpExchange> exchange, std::shared_ptr<void> held) {
      handle(std::move(exchange), std::move(held));
    };
    handler.error_body = [](const HttpRequest&, int status, std::string_view message) {
      return "{\"status\":" + std::to_string(status) + ",\"message\":\"" + std::string(message) +
             "\"}";
    };
    server_ = make_http_server(address, limits_, std::move(handler));
    thread_ = std::thread([this] { server_->run(); });
  }
  void stop() {
    if (server_) server_->stop();
    if (thread_.joinable()) thread_.join();
  }
  void TearDown() override {
    stop();
    if (server_) {
      EXPECT_EQ(server_->counters().connections, 0);
    }
    held_.clear();
    server_.reset();
    EXPECT_EQ(num_permits_, 0) << "a permit leaked";
  }

  RawHttpClient connect() { return RawHttpClient(server_->port()); }
  RawAnswer ask(const std::string& request) {
    RawHttpClient client = connect();
    client.send(request);
    return client.read_answer();
  }

  // On the I/O thread, and waits for it.
  void on_io(const std::function<void()>& work) {
    std::promise<void> done;
    server_->post([&] {
      work();
      done.set_value();
    });
    done.get_future().get();
  }
  // The next request for /hold.
  std::shared_ptr<HeldExchange> next_held() {
    std::unique_lock lock(mutex_);
    const size_t index = num_taken_++;
    EXPECT_TRUE(changed_.wait_for(lock, 5s, [&] { return held_.size() > index; }));
    return held_.at(index);
  }
  bool eventually(const std::function<bool()>& is_true) {
    const auto end = std::chrono::steady_clock::now() + 5s;
    while (std::chrono::steady_clock::now() < end) {
      if (is_true()) return true;
      std::this_thread::sleep_for(1ms);
    }
    return false;
  }
  bool is_closed(const HeldExchange& held) {
    const std::lock_guard lock(mutex_);
    return held.num_closed > 0;
  }
  // Whether on_close came within a second from `since` on; the server's first timer would be at 10
  // s.
  void expect_noticed(const HeldExchange& held, std::chrono::steady_clock::time_point since) {
    ASSERT_TRUE(eventually([&] { return is_closed(held); }));
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(held.num_closed, 1);
    EXPECT_LT(held.closed_at - since, 1s);
  }

  virtual HttpGate gate(const HttpRequest& head) {
    if (head.path == "/refused") return {.refusal = HttpResponse{.status = 429, .body = "full"}};
    ++num_permits_;
    ++num_gates_;
    return {.held = std::shared_ptr<void>(this, [this](void*) { --num_permits_; })};
  }
  virtual void handle(std::shared_ptr<HttpExchange> exchange, std::shared_ptr<void> /*held*/) {
    const HttpRequest& request = exchange->request();
    if (request.path == "/throw") throw 1;
    if (request.path == "/drop") return;
    if (request.path == "/hold") return hold(std::move(exchange));
    exchange->respond(
        {.content_type = "text/plain",
         .body = request.method + " " + request.path + "?" + request.query + " " + request.body});
  }
  void hold(std::shared_ptr<HttpExchange> exchange) {
    const std::lock_guard lock(mutex_);
    auto held = std::make_shared<HeldExchange>();
    held->exchange = exchange;
    exchange->on_close([this, held] {
      const std::lock_guard closed_lock(mutex_);
      ++held->num_closed;
      held->closed_at = std::chrono::steady_clock::now();
    });
    held_.push_back(std::move(held));
    changed_.notify_all();
  }

  HttpLimits limits_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
  std::atomic<int> num_permits_{0};
  std::atomic<int> num_gates_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<HeldExchange>> held_;
  size_t num_taken_ = 0;
};

}  // namespace paceline
