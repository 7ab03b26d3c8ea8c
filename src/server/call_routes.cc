// Every route that has a dialect: the body becomes a call, which a worker prepares and the engine
// computes.
#include <utility>

#include "server/generation_response.h"
#include "server/item_response.h"
#include "server/model_call.h"
#include "server/route_table.h"
#include "server/routes.h"

namespace paceline {
namespace {

// Prepares each kind of call, and says what is done next.
struct PreparingCall {
  const TextModel& model;
  const RequestRules& rules;

  Continuation operator()(GenerationCall call) const {
    return start<GenerationResponse>(prepare_generation(model, std::move(call), rules));
  }
  Continuation operator()(ItemCall call) const {
    return start<ItemResponse>(prepare_items(model, std::move(call), rules));
  }
  Continuation operator()(const CountCall& call) const {
    auto json = std::make_shared<std::string>(call.write(count_prompt_tokens(model, call.request)));
    return [json](const CallPtr& ready) { ready->respond_json(std::move(*json)); };
  }

 private:
  template <class Response, class Prepared>
  static Continuation start(Prepared prepared) {
    return [held = std::make_shared<Prepared>(std::move(prepared))](const CallPtr& ready) {
      std::make_shared<Response>(ready, std::move(*held))->start();
    };
  }
};

// Whether the answer is an event stream, which may have comments.
bool has_event_stream(const Dialect& dialect, const Call& call) {
  const auto* generation = std::get_if<GenerationCall>(&call);
  return generation != nullptr && dialect.stream_type == "text/event-stream" &&
         std::visit([](const auto& one) { return one.generation.streaming.stream; },
                    generation->request);
}

}  // namespace

void handle_call(const CallPtr& call) {
  ServerContext& context = call->context();
  on_model(call, [dialect = call->route().dialect, &context,
                  tenant = context.keys.tenant_of(call->exchange().request()),
                  body = take_body(*call)] {
    const auto parsed = std::make_shared<Call>(
        dialect->parse(body(), {.limits = context.terms, .owner = tenant, .seal = &context.seal}));
    return ModelJob{.model = common_fields_of(*parsed).model,
                    .has_stream = has_event_stream(*dialect, *parsed),
                    .run = [parsed, tenant](HostedModel& model) {
                      apply_rules(model.text, model.rules, tenant, common_fields_of(*parsed));
                      return std::visit(PreparingCall{model.text, model.rules}, std::move(*parsed));
                    }};
  });
}

}  // namespace paceline
