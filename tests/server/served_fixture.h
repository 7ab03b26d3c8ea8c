// A server's parts without sockets: work that is posted, an exchange that keeps what is written,
// and a served model whose engine is stepped by the test.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/queue_limit.h"
#include "server/admission.h"
#include "server/api_call.h"
#include "server/server_context.h"
#include "tests/engine/engine_fixture.h"

namespace paceline::testing {

// Keeps what is posted until run_posted().
class PostedWork final : public HttpServer {
 public:
  // Whether there was some.
  bool run_posted() {
    std::vector<std::function<void()>> works;
    {
      const std::lock_guard lock(mutex_);
      works.swap(posted_);
    }
    for (const auto& work : works) work();
    return !works.empty();
  }

  void post(std::function<void()> work) override {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(work));
  }
  void after(std::chrono::milliseconds /*delay*/, std::function<void()> /*work*/) override {}
  uint16_t port() const override { return 0; }
  void run() override {}
  void close_listeners() override {}
  void stop() override {}
  HttpCounters counters() const override { return {}; }

 private:
  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;
};

class KeptExchange final : public HttpExchange {
 public:
  const HttpRequest& request() const override { return asked; }
  HttpRequest& request() override { return asked; }
  void respond(HttpResponse response) override {
    answer = std::move(response);
    is_ended = true;
  }
  void begin(HttpResponse response) override { answer = std::move(response); }
  void write(std::string_view piece) override { pieces.emplace_back(piece); }
  void end() override { is_ended = true; }
  void abort() override { is_aborted = true; }
  size_t buffered_bytes() const override { return num_buffered; }
  HttpProgress progress() const override { return {}; }
  bool is_open() const override { return !is_ended && !is_aborted && !is_gone; }
  void on_close(std::function<void()> callback) override { on_close_ = std::move(callback); }

  void close() {
    is_gone = true;
    if (on_close_) on_close_();
  }
  std::string written() const {
    std::string all;
    for (const std::string& piece : pieces) all += piece;
    return all;
  }

  HttpRequest asked;
  std::optional<HttpResponse> answer;  // whole, or the head of a streamed one
  std::vector<std::string> pieces;
  size_t num_buffered = 0;
  bool is_ended = false;
  bool is_aborted = false;
  bool is_gone = false;

 private:
  std::function<void()> on_close_;
};

// A model without a tokenizer: prompts and texts are token ids.
class ServedTest : public EngineTest {
 protected:
  explicit ServedTest(Script script = count_up) : EngineTest(std::move(script)) {}
  ~ServedTest() override {
    context_.reset();
    engine_.reset();
  }

  void serve(const Shape& shape = {.limits = {.max_model_len = 64, .max_batched_tokens = 8}}) {
    engine(shape);
    context_ =
        std::unique_ptr<ServerContext>(new ServerContext{.options = options_,
                                                         .http = http_,
                                                         .keys = ApiKeys({}),
                                                         .in_flight = InFlightLimit(8),
                                                         .terms = {},
                                                         .responses = ResponseStore({}),
                                                         .body_bytes = BytesLimit(1 << 20),
                                                         .response_bytes = BytesLimit(1 << 20),
                                                         .memory = MemoryWatch(0),
                                                         .metrics = std::vector<ServerMetrics>(1),
                                                         .host = ModelHost(entries(), {}, open()),
                                                         .workers = WorkerPool(1, 8)});
    context_->host.start();
  }

  // A call to a route, as admission has let it in.
  std::shared_ptr<ApiCall> call(std::string_view path) {
    std::string allow;
    exchange_ = std::make_shared<KeptExchange>();
    exchange_->asked = {.method = "POST", .path = std::string(path)};
    auto admitted = std::make_shared<AdmittedRequest>();
    admitted->route = std::get<const Route*>(find_route("POST", path, allow));
    admitted->permit = context_->in_flight.acquire();
    auto call = std::make_shared<ApiCall>(*context_, exchange_, admitted);
    call->set_model(context_->host.try_use(0));
    return call;
  }

  const TextModel& model() const { return context_->host.look(0)->text; }
  const RequestRules& rules() const { return context_->host.look(0)->rules; }

  // One step of the engine, and what it brings to the I/O thread.
  bool turn() {
    const bool has_more = engine_->step();
    http_.run_posted();
    return has_more;
  }
  // Until the answer is there, workers included.
  void run_to_the_end() {
    for (int tries = 0; tries < 2000 && exchange_->is_open(); ++tries) {
      if (!turn()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  std::vector<ModelEntry> entries() {
    std::vector<ModelEntry> entries;
    entries.push_back(
        {.names = {"m"},
         .loaded = ServedModel{.names = {"m"}, .text = {.name = "m", .engine = *engine_}}});
    return entries;
  }
  ModelHost::Open open() {
    return [this](size_t /*index*/, ServedModel model) {
      RequestRules rules{.model_names = {"m"}, .all_names = {"m"}, .max_response_bytes = 1 << 20};
      return std::make_shared<HostedModel>(std::move(model), std::move(rules), *context_,
                                           context_->metrics[0]);
    };
  }

  ServerOptions options_;
  PostedWork http_;
  std::unique_ptr<ServerContext> context_;
  std::shared_ptr<KeptExchange> exchange_;
};

}  // namespace paceline::testing
