// The models of the server: /v1/models, and /models with their states, loading and unloading as
// llama.cpp's server has them.
#include <chrono>
#include <utility>

#include "base/json_writer.h"
#include "engine/adapter_set.h"
#include "protocol/plain_requests.h"
#include "server/model_call.h"
#include "server/routes.h"

namespace paceline {
namespace {

int64_t seconds_since_1970(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

constexpr std::string_view state_name(ModelState state) {
  constexpr std::string_view kNames[] = {"unloaded", "loading", "loaded", "unloading"};
  return kNames[static_cast<size_t>(state)];
}

// One name of a model or of an adapter of it.
struct ListedName {
  std::string name;
  size_t model = 0;
  bool is_adapter = false;
};

std::vector<ListedName> listed_names(const ModelHost& host) {
  std::vector<ListedName> listed, adapters;
  for (size_t i = 0; i < host.num_models(); ++i) {
    for (const std::string& name : host.entry(i).names) listed.push_back({name, i, false});
    const ModelLease model = host.look(i);
    const bool is_loaded = model != nullptr && model->text.adapters != nullptr;
    for (const std::string& name :
         is_loaded ? model->text.adapters->names() : host.entry(i).adapters) {
      adapters.push_back({name, i, true});
    }
  }
  listed.insert(listed.end(), adapters.begin(), adapters.end());
  return listed;
}

enum class WithStatus : bool { no, yes };

void write_status(JsonWriter& writer, const ModelStatus& status) {
  writer.key("status").begin_object().member("value", state_name(status.state));
  if (!status.failure.empty()) writer.member("failed", true).member("message", status.failure);
  writer.end_object().member("in_cache", true);
}

void write_model(JsonWriter& writer, const ServerContext& context, const ListedName& listed,
                 WithStatus with_status) {
  const ModelHost& host = context.host;
  const std::string& root = host.entry(listed.model).names[0];
  writer.begin_object().member("id", listed.name).member("object", "model");
  writer.member("created", seconds_since_1970(context.started)).member("owned_by", "paceline");
  writer.member("root", root);
  if (listed.is_adapter) writer.member("parent", root);
  if (const ModelLease model = host.look(listed.model)) {
    writer.member("max_model_len", model->text.engine.limits().max_model_len);
    writer.key("meta").begin_object().member("n_vocab", model->text.engine.vocab_size());
    writer.member("n_ctx_train", model->text.max_position).end_object();
  }
  if (with_status == WithStatus::yes) write_status(writer, host.status(listed.model));
  writer.end_object();
}

void list(const CallPtr& call, WithStatus with_status) {
  call->respond_json(object_json([&](JsonWriter& writer) {
    writer.member("object", "list").key("data").begin_array();
    for (const ListedName& listed : listed_names(call->context().host)) {
      write_model(writer, call->context(), listed, with_status);
    }
    writer.end_array();
    // Codex CLI expects this member, where its own service describes models; without any it knows
    // enough.
    if (query_member(*call, "client_version")) writer.key("models").begin_array().end_array();
  }));
}

// Answers as soon as it has begun.
void change(const CallPtr& call, bool (ModelHost::*begin)(size_t index), std::string_view problem) {
  on_worker(
      call,
      [body = take_body(*call), begin, problem, &context = call->context()]() -> Continuation {
        const std::string name = parse_model_request(body(), context.terms).model;
        const auto index = context.host.find(name);
        if (!index) throw unknown_model(name, context.host.names());
        if (!(context.host.*begin)(*index)) {
          throw RequestError("model", ErrorReason::invalid_value,
                             fmt::format("model: {} {}", name, problem));
        }
        return respond_with({.body = R"({"success":true})"});
      });
}

}  // namespace

void list_models(const CallPtr& call) { list(call, WithStatus::no); }
void list_model_states(const CallPtr& call) { list(call, WithStatus::yes); }

void show_model(const CallPtr& call) {
  constexpr std::string_view kPrefix = "/v1/models/";
  const std::string name = call->exchange().request().path.substr(kPrefix.size());
  std::vector<std::string> names;
  for (const ListedName& listed : listed_names(call->context().host)) {
    names.push_back(listed.name);
    if (listed.name != name) continue;
    std::string json;
    JsonWriter writer(json);
    write_model(writer, call->context(), listed, WithStatus::no);
    return call->respond_json(std::move(json));
  }
  throw unknown_model(name, names);
}

void handle_load_model(const CallPtr& call) {
  change(call, &ModelHost::load, "is loaded already, or being loaded");
}

void handle_unload_model(const CallPtr& call) { change(call, &ModelHost::unload, "isn't loaded"); }

}  // namespace paceline
