#include "server/background_call.h"

#include <utility>

#include "protocol/responses_writer.h"
#include "server/generation_response.h"

namespace paceline {

void start_in_background(const std::shared_ptr<ApiCall>& call, PreparedGeneration prepared) {
  ServerContext& context = call->context();
  const auto id = std::make_shared<std::string>();
  auto detached =
      call->detach([&context, id, owner = context.keys.tenant_of(call->exchange().request())](
                       const HttpResponse& response) {
        context.background.remove(*id);
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
  context.background.add(*id, response);
  response->start();
  call->respond_json(std::move(accepted));
}

}  // namespace paceline
