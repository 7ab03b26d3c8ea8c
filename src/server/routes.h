// The routes' handlers, called on the I/O thread with an admitted request.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "server/api_call.h"

namespace paceline {

// A request to a route that has a dialect.
void handle_call(const CallPtr& call);
// Stored responses.
void show_response(const CallPtr& call);
void list_input_items(const CallPtr& call);
void delete_response(const CallPtr& call);
void cancel_response(const CallPtr& call);
// Tokenizer and chat template.
void handle_tokenize(const CallPtr& call);
void handle_detokenize(const CallPtr& call);
void handle_apply_template(const CallPtr& call);
// LoRA adapters at run time.
void handle_load_adapter(const CallPtr& call);
void handle_unload_adapter(const CallPtr& call);

// About the server.
void list_models(const CallPtr& call);
void list_model_states(const CallPtr& call);
void handle_load_model(const CallPtr& call);
void handle_unload_model(const CallPtr& call);
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
void handle_preflight(const CallPtr& call);

// As Ollama describes itself and its models.
void list_ollama_models(const CallPtr& call);
void list_loaded_ollama_models(const CallPtr& call);
void show_ollama_model(const CallPtr& call);
void show_ollama_version(const CallPtr& call);
void refuse_management(const CallPtr& call);

// Calls `answer` with snapshots of the models' engines after their current steps, or with the last
// one where that step takes longer than half a second.
using SnapshotAnswer =
    std::function<void(const CallPtr& call, const std::vector<ModelLease>& models,
                       const std::vector<EngineSnapshot>& snapshots)>;
void with_snapshots(const CallPtr& call, std::vector<ModelLease> models, SnapshotAnswer answer);

}  // namespace paceline
