// Every route that has a dialect: the body becomes a call, which a worker prepares and the engine
// computes.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "protocol/responses_writer.h"
#include "server/generation_response.h"
#include "server/item_response.h"
#include "server/model_call.h"
#include "server/route_table.h"
#include "server/routes.h"

namespace paceline {
namespace {

// Starts a generation that goes on without its connection: answers the call with what its writer
// says of an accepted one, and computes it.
void start_in_background(const CallPtr& call, PreparedGeneration prepared) {
  ServerContext& context = call->context();
  const auto id = std::make_shared<std::string>();
  auto detached =
      call->detach([&context, id, owner = context.keys.tenant_of(call->exchange().request())](
                       const HttpResponse& response) {
        context.background.erase(*id);
        // A whole answer is stored by its writer.
        constexpr int kOk = 200;
        if (response.status != kOk) {
          responses::store_failure(context.responses, owner, *id, response.body);
        }
      });
  const auto response =
      std::make_shared<GenerationResponse>(std::move(detached), std::move(prepared));
  *id = response->id();
  std::string accepted = response->accept();
  context.background[*id] = response;
  response->start();
  call->respond_json(std::move(accepted));
}

// Prepares each kind of call, and says what is done next.
struct PreparingCall {
  const TextModel& model;
  const RequestRules& rules;

  Continuation operator()(GenerationCall call) const {
    const bool is_background = call.is_background;
    auto prepared = prepare_generation(model, std::move(call), rules);
    if (!is_background) return start<GenerationResponse>(std::move(prepared));
    return [held = std::make_shared<PreparedGeneration>(std::move(prepared))](
               const CallPtr& ready) { start_in_background(ready, std::move(*held)); };
  }
  Continuation operator()(ItemCall call) const {
    return start<ItemResponse>(prepare_items(model, std::move(call), rules));
  }
  Continuation operator()(const CountCall& call) const {
    return respond_with({.body = call.write(count_prompt_tokens(model, call.request))});
  }
  // The model is loaded, as it answers.
  Continuation operator()(const LoadCall& call) const {
    return respond_with({.body = call.write(call, new_head("load-", rules.model_names.front()))});
  }

 private:
  template <class Response, class Prepared>
  static Continuation start(Prepared prepared) {
    return [held = std::make_shared<Prepared>(std::move(prepared))](const CallPtr& ready) {
      std::make_shared<Response>(ready, std::move(*held))->start();
    };
  }
};

// The answer of a call that unloads its model; null: it doesn't.
Continuation unload_model(ModelHost& host, const Call& call) {
  const auto* load = std::get_if<LoadCall>(&call);
  if (load == nullptr || !load->unloads()) return nullptr;
  const size_t index = host.choose(load->common.model);
  host.unload(index);
  return respond_with({.body = load->write(*load, new_head("load-", host.entry(index).names[0]))});
}

// How long the model stays, if the request says so.
void keep_model(ModelHost& host, const HostedModel& model, const CommonFields& common) {
  constexpr double kMostSeconds = 1e9, kMilliseconds = 1e3;
  const auto index = host.find(model.names[0]);
  if (!common.keep_alive_seconds || !index) return;
  const double seconds = std::clamp(*common.keep_alive_seconds, -1.0, kMostSeconds);
  host.keep_alive(*index, std::chrono::milliseconds(std::llround(seconds * kMilliseconds)));
}

// A comment in an event stream; white space before an object of a stream of lines, whose readers
// parse each line and fail at an empty one. Nothing where the answer isn't streamed.
std::string_view ping_of(const Dialect& dialect, const Call& call) {
  const auto* generation = std::get_if<GenerationCall>(&call);
  const bool is_streamed =
      generation != nullptr &&
      std::visit([](const auto& one) { return one.generation.streaming.stream; },
                 generation->request);
  if (!is_streamed) return {};
  return has_event_stream(dialect) ? ": ping\n\n" : " ";
}

}  // namespace

void handle_call(const CallPtr& call) {
  ServerContext& context = call->context();
  on_model(call, [dialect = call->route().dialect, &context,
                  tenant = context.keys.tenant_of(call->exchange().request()),
                  body = take_body(*call)] {
    const auto parsed = std::make_shared<Call>(
        dialect->parse(body(), {.limits = context.terms,
                                .owner = tenant,
                                .seal = &context.options.seal,
                                .store = &context.responses,
                                .compaction_prompt = context.options.compaction_prompt,
                                .max_compaction_tokens = context.options.max_compaction_tokens}));
    return ModelJob{.answer = unload_model(context.host, *parsed),
                    .model = common_fields_of(*parsed).model,
                    .ping = ping_of(*dialect, *parsed),
                    .run = [parsed, tenant, &context](HostedModel& model) {
                      keep_model(context.host, model, common_fields_of(*parsed));
                      apply_rules(model.text, model.rules, tenant, common_fields_of(*parsed));
                      return std::visit(PreparingCall{model.text, model.rules}, std::move(*parsed));
                    }};
  });
}

}  // namespace paceline
