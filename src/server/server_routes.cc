#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/json_writer.h"
#include "base/version.h"
#include "engine/adapter_set.h"
#include "server/cross_origin.h"
#include "server/page_files.h"
#include "server/routes.h"
#include "server/server_errors.h"

namespace paceline {
namespace {

int64_t seconds_since_1970(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::vector<std::string> adapter_names(const HostedModel& model) {
  const AdapterSet* const adapters = model.text.adapters;
  return adapters != nullptr ? adapters->names() : std::vector<std::string>();
}

enum class ModelKind : bool { base, adapter };

void write_model(JsonWriter& writer, const ApiCall& call, std::string_view name, ModelKind kind) {
  const HostedModel& model = *call.model();
  writer.begin_object().member("id", name).member("object", "model");
  writer.member("created", seconds_since_1970(call.context().started))
      .member("owned_by", "paceline");
  writer.member("root", model.names[0]);
  if (kind == ModelKind::adapter) writer.member("parent", model.names[0]);
  writer.member("max_model_len", model.text.engine.limits().max_model_len);
  writer.key("meta").begin_object().member("n_vocab", model.text.engine.vocab_size());
  writer.member("n_ctx_train", model.text.max_position).end_object();
  writer.end_object();
}

void respond_status(const CallPtr& call, std::string_view status) {
  std::string json;
  JsonWriter(json).begin_object().member("status", status).end_object();
  call->respond_json(std::move(json));
}

ApiError engine_hangs(const ServerContext& context) {
  return {ErrorReason::engine_unhealthy,
          fmt::format("the engine's last step ended {:.0f} s ago", context.host.step_age())};
}

}  // namespace

void list_models(const CallPtr& call) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().member("object", "list").key("data").begin_array();
  for (const std::string& name : call->model()->names) {
    write_model(writer, *call, name, ModelKind::base);
  }
  for (const std::string& name : adapter_names(*call->model())) {
    write_model(writer, *call, name, ModelKind::adapter);
  }
  writer.end_array().end_object();
  call->respond_json(std::move(json));
}

void show_model(const CallPtr& call) {
  constexpr std::string_view kPrefix = "/v1/models/";
  const std::string name = call->exchange().request().path.substr(kPrefix.size());
  std::vector<std::string> names = call->model()->names;
  const bool is_base = std::find(names.begin(), names.end(), name) != names.end();
  for (std::string& adapter : adapter_names(*call->model())) names.push_back(std::move(adapter));
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    return call->fail(
        {ErrorReason::model_not_found,
         fmt::format("model: found \"{}\", this server has {}", name, fmt::join(names, ", ")),
         "model"});
  }
  std::string json;
  JsonWriter writer(json);
  write_model(writer, *call, name, is_base ? ModelKind::base : ModelKind::adapter);
  call->respond_json(std::move(json));
}

void show_version(const CallPtr& call) {
  std::string json;
  JsonWriter(json)
      .begin_object()
      .member("version", kVersion)
      .member("commit", kGitDescribe)
      .end_object();
  call->respond_json(std::move(json));
}

void show_live(const CallPtr& call) { respond_status(call, "ok"); }

void show_health(const CallPtr& call) {
  const ServerContext& context = call->context();
  if (context.host.is_well()) return respond_status(call, "ok");
  call->fail(engine_hangs(context));
}

void show_ready(const CallPtr& call) {
  constexpr double kLongestFull = 10;
  const ServerContext& context = call->context();
  if (context.draining) return call->fail(ended_by_server());
  if (!context.host.is_well()) return call->fail(engine_hangs(context));
  if (context.memory.is_full()) return call->fail(memory_is_full());
  const double full = context.in_flight.full_for().count();
  if (full < kLongestFull) return respond_status(call, "ok");
  call->fail({ErrorReason::overloaded, fmt::format("the server has been full for {:.0f} s", full)});
}

void show_page(const CallPtr& call) {
  const std::string& path = call->exchange().request().path;
  const PageFile* file = find_page_file(path);
  if (file != nullptr) return call->respond(page_response(*file));
  call->fail({ErrorReason::unknown_url, path + ": no such file"});
}

void handle_preflight(const CallPtr& call) { call->respond(preflight_response()); }

}  // namespace paceline
