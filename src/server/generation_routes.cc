#include <utility>

#include "server/generation_answer.h"
#include "server/item_answer.h"
#include "server/routes.h"
#include "server/worker_call.h"

namespace paceline {
namespace {

using PrepareItems = PreparedItems (*)(const TextModel& model, std::string_view body,
                                       const RequestRules& rules);

void answer_generation(const CallPtr& call, ApiEndpoint endpoint) {
  const TextModel& model = call->context().model;
  const RequestRules& rules = call->context().rules;
  auto body = std::make_shared<std::string>(std::move(call->exchange().request().body));
  on_worker(call, [&model, &rules, endpoint, body]() -> Continuation {
    auto prepared =
        std::make_shared<PreparedRequest>(prepare_request(model, endpoint, *body, rules));
    return [prepared](const CallPtr& ready) {
      std::make_shared<GenerationAnswer>(ready, std::move(*prepared))->start();
    };
  });
}

void answer_items(const CallPtr& call, PrepareItems prepare) {
  const TextModel& model = call->context().model;
  const RequestRules& rules = call->context().rules;
  auto body = std::make_shared<std::string>(std::move(call->exchange().request().body));
  on_worker(call, [&model, &rules, prepare, body]() -> Continuation {
    auto prepared = std::make_shared<PreparedItems>(prepare(model, *body, rules));
    return [prepared](const CallPtr& ready) {
      std::make_shared<ItemAnswer>(ready, std::move(*prepared))->start();
    };
  });
}

}  // namespace

void answer_chat(const CallPtr& call) { answer_generation(call, ApiEndpoint::chat); }
void answer_completion(const CallPtr& call) { answer_generation(call, ApiEndpoint::completions); }
void answer_native(const CallPtr& call) { answer_generation(call, ApiEndpoint::generate); }
void answer_classification(const CallPtr& call) { answer_items(call, prepare_classification); }
void answer_score(const CallPtr& call) { answer_items(call, prepare_score); }

}  // namespace paceline
