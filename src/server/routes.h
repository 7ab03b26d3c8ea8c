// What the routes do; each is called on the I/O thread with a request that was let in.
#pragma once

#include <memory>

#include "server/api_call.h"

namespace paceline {

struct EngineSnapshot;

using CallPtr = std::shared_ptr<ApiCall>;

// Text out of the model.
void answer_chat(const CallPtr& call);
void answer_completion(const CallPtr& call);
void answer_native(const CallPtr& call);
// The same in the formats of llama.cpp's server.
void answer_llama_completion(const CallPtr& call);
void answer_infill(const CallPtr& call);
// Items in, numbers out.
void answer_classification(const CallPtr& call);
void answer_score(const CallPtr& call);
// Text and tokens.
void tokenize_text(const CallPtr& call);
void detokenize_ids(const CallPtr& call);
void apply_template(const CallPtr& call);

// About the server.
void list_models(const CallPtr& call);
void show_model(const CallPtr& call);
void show_version(const CallPtr& call);
void show_health(const CallPtr& call);
void show_live(const CallPtr& call);
void show_ready(const CallPtr& call);
void show_requests(const CallPtr& call);
// As llama.cpp's server describes itself.
void show_props(const CallPtr& call);
void show_slots(const CallPtr& call);
void show_metrics(const CallPtr& call);
void show_openapi(const CallPtr& call);
void show_page(const CallPtr& call);
void answer_preflight(const CallPtr& call);

// Calls `answer` with what the engine holds after its current step, or, if that one takes longer
// than half a second, with what it held when somebody last looked.
void with_snapshot(const CallPtr& call,
                   void (*answer)(const CallPtr& call, const EngineSnapshot& snapshot));

}  // namespace paceline
