#include <utility>

#include "server/generation_answer.h"
#include "server/item_answer.h"
#include "server/routes.h"
#include "server/worker_call.h"

namespace paceline {
namespace {

std::shared_ptr<ReceivedRequest> received(const CallPtr& call) {
  HttpRequest& request = call->exchange().request();
  return std::make_shared<ReceivedRequest>(
      ReceivedRequest{.body = std::move(request.body),
                      .tenant = call->context().keys.tenant_of(request.header("authorization"))});
}

// What `prepare` makes of the request on a worker starts an Answer.
template <class Answer, class Prepare>
void answer_with(const CallPtr& call, Prepare prepare) {
  const TextModel& model = call->context().model;
  const RequestRules& rules = call->context().rules;
  on_worker(call, [&model, &rules, prepare, request = received(call)]() -> Continuation {
    const auto prepared = std::make_shared<decltype(prepare(model, *request, rules))>(
        prepare(model, *request, rules));
    return [prepared](const CallPtr& ready) {
      std::make_shared<Answer>(ready, std::move(*prepared))->start();
    };
  });
}

void answer_generation(const CallPtr& call, ApiEndpoint endpoint) {
  answer_with<GenerationAnswer>(call,
                                [endpoint](const TextModel& model, const ReceivedRequest& request,
                                           const RequestRules& rules) {
                                  return prepare_request(model, endpoint, request, rules);
                                });
}

}  // namespace

void answer_chat(const CallPtr& call) { answer_generation(call, ApiEndpoint::chat); }
void answer_completion(const CallPtr& call) { answer_generation(call, ApiEndpoint::completions); }
void answer_llama_completion(const CallPtr& call) {
  answer_generation(call, ApiEndpoint::completion);
}
void answer_infill(const CallPtr& call) { answer_generation(call, ApiEndpoint::infill); }
void answer_native(const CallPtr& call) { answer_generation(call, ApiEndpoint::generate); }
void answer_classification(const CallPtr& call) {
  answer_with<ItemAnswer>(call, prepare_classification);
}
void answer_score(const CallPtr& call) { answer_with<ItemAnswer>(call, prepare_score); }

}  // namespace paceline
