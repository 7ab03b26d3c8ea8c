#include <utility>

#include "server/generation_answer.h"
#include "server/routes.h"
#include "server/worker_call.h"

namespace paceline {
namespace {

void answer_generation(const CallPtr& call, ApiEndpoint endpoint) {
  const TextModel& model = call->context().model;
  const ServerOptions& options = call->context().options;
  auto body = std::make_shared<std::string>(std::move(call->exchange().request().body));
  on_worker(call, [&model, &options, endpoint, body]() -> Continuation {
    auto prepared = std::make_shared<PreparedRequest>(
        prepare_request(model, parse_api_request(endpoint, *body, options.model_names)));
    return [prepared](const CallPtr& ready) {
      std::make_shared<GenerationAnswer>(ready, std::move(*prepared))->start();
    };
  });
}

}  // namespace

void answer_chat(const CallPtr& call) { answer_generation(call, ApiEndpoint::chat); }
void answer_completion(const CallPtr& call) { answer_generation(call, ApiEndpoint::completions); }

}  // namespace paceline
