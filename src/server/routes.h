// What the routes do; each is called on the I/O thread with a request that was let in.
#pragma once

#include <memory>

#include "server/api_call.h"

namespace paceline {

using CallPtr = std::shared_ptr<ApiCall>;

// Text out of the model.
void answer_chat(const CallPtr& call);
void answer_completion(const CallPtr& call);

// About the server.
void list_models(const CallPtr& call);
void show_model(const CallPtr& call);
void show_version(const CallPtr& call);
void show_health(const CallPtr& call);
void show_live(const CallPtr& call);
void show_ready(const CallPtr& call);
void show_requests(const CallPtr& call);
void show_page(const CallPtr& call);

}  // namespace paceline
