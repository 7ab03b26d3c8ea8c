#include <utility>

#include "server/generation_answer.h"
#include "server/item_answer.h"
#include "server/routes.h"
#include "server/worker_call.h"

namespace paceline {
namespace {

using PrepareItems = PreparedItems (*)(const TextModel& model, const ReceivedRequest& received,
                                       const RequestRules& rules);

std::shared_ptr<ReceivedRequest> received(const CallPtr& call) {
  HttpRequest& request = call->exchange().request();
  return std::make_shared<ReceivedRequest>(
      ReceivedRequest{.body = std::move(request.body),
                      .tenant = call->context().keys.tenant_of(request.header("authorization"))});
}

void answer_generation(const CallPtr& call, ApiEndpoint endpoint) {
  const TextModel& model = call->context().model;
  const RequestRules& rules = call->context().rules;
  on_worker(call, [&model, &rules, endpoint, request = received(call)]() -> Continuation {
    auto prepared =
        std::make_shared<PreparedRequest>(prepare_request(model, endpoint, *request, rules));
    return [prepared](const CallPtr& ready) {
      std::make_shared<GenerationAnswer>(ready, std::move(*prepared))->start();
    };
  });
}

void answer_items(const CallPtr& call, PrepareItems prepare) {
  const TextModel& model = call->context().model;
  const RequestRules& rules = call->context().rules;
  on_worker(call, [&model, &rules, prepare, request = received(call)]() -> Continuation {
    auto prepared = std::make_shared<PreparedItems>(prepare(model, *request, rules));
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
