#include "server/model_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/request_error.h"
#include "http/refusal.h"
#include "http/target.h"
#include "server/server_errors.h"

namespace paceline {
namespace {

using Loaded = std::function<void(const CallPtr& call)>;

// A call that waits for a model; null once it goes on. It lives and dies on the I/O thread.
using WaitingCall = std::shared_ptr<CallPtr>;

void ping_while_waiting(const WaitingCall& waiting, std::string_view ping) {
  const ServerContext& context = (*waiting)->context();
  context.http.after(context.options.ping_time, [waiting, ping] {
    if (*waiting == nullptr) return;
    (*waiting)->begin_events();
    (*waiting)->exchange().write(ping);
    ping_while_waiting(waiting, ping);
  });
}

// I/O thread.
void load_for(const CallPtr& call, size_t index, std::string_view ping, Loaded loaded) {
  ServerContext& context = call->context();
  const auto waiting = std::make_shared<CallPtr>(call);
  call->exchange().on_close([waiting] {
    const CallPtr gone = std::exchange(*waiting, nullptr);
    if (gone != nullptr) gone->end_stream(kClientClosedRequest, "client_gone");
  });
  if (!ping.empty()) ping_while_waiting(waiting, ping);
  context.http.after(context.options.request_timeout, [waiting] {
    const CallPtr late = std::exchange(*waiting, nullptr);
    if (late != nullptr) late->fail(took_too_long());
  });
  const std::string name = context.host.entry(index).names[0];
  context.host.use(index, [waiting, name, &http = context.http, loaded = std::move(loaded)](
                              ModelLease model, const std::string& problem) {
    http.post([waiting, name, loaded, model = std::move(model), problem] {
      const CallPtr ready = std::exchange(*waiting, nullptr);
      if (ready == nullptr) return;
      if (model == nullptr) return ready->fail(model_not_loaded(name, problem));
      ready->set_model(model);
      guarded(*ready, [&] { loaded(ready); });
    });
  });
}

}  // namespace

std::optional<std::string> named_model(const Json& body) {
  const Json* name = body.find("model");
  const std::string* text = name == nullptr ? nullptr : name->string();
  return text == nullptr ? std::nullopt : std::optional(*text);
}

void on_model(const CallPtr& call, std::function<ModelJob()> read) {
  ModelHost& host = call->context().host;
  on_worker(call, [read = std::move(read), &host]() -> Continuation {
    const auto job = std::make_shared<ModelJob>(read());
    if (job->answer != nullptr) return std::move(job->answer);
    // The first model refuses an unknown name once the rest of the request has been checked.
    const bool is_first_loaded = host.status(0).state == ModelState::loaded;
    const size_t index =
        is_first_loaded ? host.find(job->model).value_or(0) : host.choose(job->model);
    if (ModelLease model = host.try_use(index)) {
      return [model, rest = job->run(*model)](const CallPtr& ready) {
        ready->set_model(model);
        rest(ready);
      };
    }
    return [index, job](const CallPtr& early) {
      load_for(early, index, job->ping, [job](const CallPtr& ready) {
        on_worker(ready, [job, &model = *ready->model()] { return job->run(model); });
      });
    };
  });
}

std::optional<std::string> query_member(const ApiCall& call, std::string_view name) {
  std::string_view query = call.exchange().request().query;
  while (!query.empty()) {
    const std::string_view member = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), member.size() + 1));
    if (!member.starts_with(name) || member.substr(name.size(), 1) != "=") continue;
    std::string value(member.substr(name.size() + 1));
    std::replace(value.begin(), value.end(), '+', ' ');
    try {
      return percent_decoded(value);
    } catch (const HttpRefusal& refusal) {
      throw RequestError(std::string(name), ErrorReason::invalid_value,
                         fmt::format("{}: {}", name, refusal.what()));
    }
  }
  return std::nullopt;
}

size_t model_of_query(const ApiCall& call) {
  return call.context().host.choose(query_member(call, "model"));
}

std::vector<ModelLease> loaded_model_of_query(const ApiCall& call) {
  ModelLease model = call.context().host.look(model_of_query(call));
  if (model == nullptr) return {};
  return {std::move(model)};
}

void with_model(const CallPtr& call, Loaded answer) {
  ModelHost& host = call->context().host;
  const size_t index = model_of_query(*call);
  if (ModelLease model = host.try_use(index)) {
    call->set_model(std::move(model));
    return answer(call);
  }
  load_for(call, index, {}, std::move(answer));
}

}  // namespace paceline
