// Every route that has a dialect: the body becomes a call, which a worker prepares and the engine
// computes.
#include <utility>

#include "server/generation_response.h"
#include "server/item_response.h"
#include "server/route_table.h"
#include "server/routes.h"
#include "server/worker_call.h"

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

}  // namespace

void handle_call(const CallPtr& call) {
  HttpRequest& request = call->exchange().request();
  ServerContext& context = call->context();
  on_worker(call, [dialect = call->route().dialect, &model = *call->model(),
                   tenant = context.keys.tenant_of(request), &seal = context.seal,
                   body = take_body(*call)]() {
    Call parsed =
        dialect->parse(body(), {.limits = model.rules.terms, .owner = tenant, .seal = &seal});
    apply_rules(model.text, model.rules, tenant, common_fields_of(parsed));
    return std::visit(PreparingCall{model.text, model.rules}, std::move(parsed));
  });
}

}  // namespace paceline
