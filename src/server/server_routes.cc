#include <fmt/format.h>

#include "base/json_writer.h"
#include "base/version.h"
#include "server/cross_origin.h"
#include "server/page_files.h"
#include "server/routes.h"
#include "server/server_errors.h"

namespace paceline {
namespace {

void respond_status(const CallPtr& call, std::string_view status) {
  call->respond_json(object_json([&](JsonWriter& writer) { writer.member("status", status); }));
}

ApiError engine_hangs(const ServerContext& context) {
  return {ErrorReason::engine_unhealthy,
          fmt::format("the engine's last step ended {:.0f} s ago", context.host.step_age())};
}

}  // namespace

void show_version(const CallPtr& call) {
  call->respond_json(object_json([](JsonWriter& writer) {
    writer.member("version", kVersion).member("commit", kGitDescribe);
  }));
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
