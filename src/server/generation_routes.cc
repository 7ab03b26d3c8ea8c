#include <utility>

#include "server/generation_response.h"
#include "server/item_response.h"
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

// Prepares the request on a worker, then starts a Response.
template <class Response, class Prepare>
void handle_with(const CallPtr& call, Prepare prepare) {
  const TextModel& model = call->context().model;
  const RequestRules& rules = call->context().rules;
  on_worker(call, [&model, &rules, prepare, request = received(call)]() -> Continuation {
    const auto prepared = std::make_shared<decltype(prepare(model, *request, rules))>(
        prepare(model, *request, rules));
    return [prepared](const CallPtr& ready) {
      std::make_shared<Response>(ready, std::move(*prepared))->start();
    };
  });
}

void handle_generation(const CallPtr& call, ApiEndpoint endpoint) {
  handle_with<GenerationResponse>(call,
                                  [endpoint](const TextModel& model, const ReceivedRequest& request,
                                             const RequestRules& rules) {
                                    return prepare_request(model, endpoint, request, rules);
                                  });
}

}  // namespace

void handle_chat(const CallPtr& call) { handle_generation(call, ApiEndpoint::chat); }
void handle_completion(const CallPtr& call) { handle_generation(call, ApiEndpoint::completions); }
void handle_llama_completion(const CallPtr& call) {
  handle_generation(call, ApiEndpoint::completion);
}
void handle_infill(const CallPtr& call) { handle_generation(call, ApiEndpoint::infill); }
void handle_generate(const CallPtr& call) { handle_generation(call, ApiEndpoint::generate); }
void handle_classify(const CallPtr& call) {
  handle_with<ItemResponse>(call, prepare_classification);
}
void handle_score_tokens(const CallPtr& call) {
  handle_with<ItemResponse>(call, prepare_token_score);
}
void handle_score(const CallPtr& call) { handle_with<ItemResponse>(call, prepare_pair_score); }
void handle_rerank(const CallPtr& call) { handle_with<ItemResponse>(call, prepare_rerank); }

void handle_embeddings(const CallPtr& call) { handle_with<ItemResponse>(call, prepare_embedding); }

}  // namespace paceline
