// DetachedExchange stands for the connection of a request that is computed in the background.
#pragma once

#include <functional>
#include <utility>

#include "http/http.h"

namespace paceline {

// Its client never goes. What is written is dropped; `on_answer` gets the answer's status and body.
class DetachedExchange : public HttpExchange {
 public:
  using OnAnswer = std::function<void(const HttpResponse& response)>;

  DetachedExchange(HttpRequest request, OnAnswer on_answer)
      : request_(std::move(request)), on_answer_(std::move(on_answer)) {}

  const HttpRequest& request() const override { return request_; }
  HttpRequest& request() override { return request_; }
  void respond(HttpResponse response) override {
    is_open_ = false;
    on_answer_(response);
  }
  void begin(HttpResponse /*response*/) override {}
  void write(std::string_view /*piece*/) override {}
  void end() override { is_open_ = false; }
  void abort() override { is_open_ = false; }
  size_t buffered_bytes() const override { return 0; }
  HttpProgress progress() const override { return {}; }
  bool is_open() const override { return is_open_; }
  void on_close(std::function<void()> /*callback*/) override {}

 private:
  HttpRequest request_;
  OnAnswer on_answer_;
  bool is_open_ = true;
};

}  // namespace paceline
