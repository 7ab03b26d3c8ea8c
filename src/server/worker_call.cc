#include "server/worker_call.h"

#include <utility>

#include "base/error.h"
#include "http/zstd_body.h"
#include "protocol/request_reader.h"
#include "server/server_errors.h"

namespace paceline {
namespace {

ApiError as_api_error(const std::exception_ptr& problem) {
  try {
    std::rethrow_exception(problem);
  } catch (const Error& error) {
    return fault_of_request(error);
  } catch (const std::exception& error) {
    return {ErrorReason::internal_error, error.what()};
  }
}

}  // namespace

Continuation respond_with(HttpResponse response) {
  return [held = std::make_shared<HttpResponse>(std::move(response))](const auto& ready) {
    ready->respond(std::move(*held));
  };
}

void guarded(ApiCall& call, const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    call.fail(as_api_error(std::current_exception()));
  }
}

void on_worker(CallPtr call, std::function<Continuation()> job, std::function<void()> gone) {
  ServerContext& context = call->context();
  HttpServer& http = context.http;
  // The worker's own reference goes back with the result: the call dies on the I/O thread.
  auto travelling = std::make_shared<CallPtr>(call);
  const bool is_taken =
      context.workers.try_run([travelling, &http, job = std::move(job), gone = std::move(gone)] {
        Continuation rest;
        try {
          rest = job();
        } catch (...) {
          rest = [error = as_api_error(std::current_exception())](const auto& failed) {
            failed->fail(error);
          };
        }
        http.post([call = std::move(*travelling), rest = std::move(rest), gone] {
          call->release_body();
          if (call->is_open()) return guarded(*call, [&] { rest(call); });
          if (gone) gone();
          call->end_stream(kClientClosedRequest, "client_gone");
        });
      });
  if (!is_taken) call->fail(queue_full("too many requests are being parsed"));
}

std::function<Json()> take_body(ApiCall& call) {
  HttpRequest& request = call.exchange().request();
  const std::string* coding = request.header("content-encoding");
  const bool is_compressed = coding != nullptr && *coding == "zstd";
  return [is_compressed, most_bytes = call.context().options.http.max_body_bytes,
          body = std::make_shared<std::string>(std::move(request.body))] {
    return parse_request_body(is_compressed ? decompress_zstd(*body, most_bytes) : *body);
  };
}

void respond_from_worker(const CallPtr& call, std::function<std::string()> make_json) {
  ServerMetrics& metrics = call->metrics();
  on_worker(
      call,
      [make_json = std::move(make_json), &metrics]() -> Continuation {
        try {
          auto json = std::make_shared<std::string>(make_json());
          return [json, &metrics](const auto& ready) {
            ++metrics.completed;
            ready->respond_json(std::move(*json));
          };
        } catch (...) {
          return [error = as_api_error(std::current_exception()), &metrics](const auto& failed) {
            ++metrics.failed;
            failed->fail(error);
          };
        }
      },
      [&metrics] { ++metrics.cancelled; });
}

}  // namespace paceline
