// /v1/load_lora_adapter and /v1/unload_lora_adapter: adapters come and go while streams go on.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/error.h"
#include "engine/adapter_set.h"
#include "protocol/plain_requests.h"
#include "server/model_call.h"
#include "server/routes.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestName = 256;

bool is_beneath(const fs::path& path, const fs::path& directory) {
  const auto end =
      std::mismatch(directory.begin(), directory.end(), path.begin(), path.end()).first;
  return end == directory.end();
}

// The real path, links followed. Messages have the request's path alone: nothing of what lies
// outside is told.
std::string resolved(const std::string& asked, const std::string& directory) {
  std::error_code problem;
  const fs::path root = fs::canonical(directory, problem);
  fs::path path;
  if (!problem) path = fs::canonical(root / asked, problem);
  if (problem || !is_beneath(path, root)) {
    throw invalid_field("lora_path", "{} isn't in the server's directory of adapters",
                        asked.substr(0, kLongestName));
  }
  return path.string();
}

void check_name(const LoadAdapterRequest& request, const RequestRules& rules,
                const AdapterSet& adapters) {
  const std::string& name = request.name;
  if (name.empty() || name.size() > kLongestName) {
    throw invalid_field("lora_name", "{} bytes, expected 1 to {}", name.size(), kLongestName);
  }
  const auto& taken = rules.all_names;
  if (std::find(taken.begin(), taken.end(), name) != taken.end()) {
    throw invalid_field("lora_name", "{} is the model's name", name);
  }
  if (!request.replaces && adapters.find(name) != nullptr) {
    throw invalid_field("lora_name", "{} is loaded already; load_inplace would replace it", name);
  }
}

std::string load(const HostedModel& model, const LoadAdapterRequest& request) {
  const RuntimeAdapters& runtime = model.runtime_adapters;
  check_name(request, model.rules, *runtime.adapters);
  const std::string path = resolved(request.path, runtime.directory);
  try {
    runtime.adapters->add_at_run_time(runtime.load(request.name, path), runtime.most);
  } catch (const Error& error) {
    throw invalid_field("lora_path", error.what());
  }
  return fmt::format("Success: LoRA adapter '{}' added successfully.", request.name);
}

std::string unload(const HostedModel& model, const UnloadAdapterRequest& request) {
  if (!model.runtime_adapters.adapters->remove(request.name)) {
    throw RequestError(
        "lora_name", ErrorReason::model_not_found,
        fmt::format("lora_name: there is no adapter {}", request.name.substr(0, kLongestName)));
  }
  return fmt::format("Success: LoRA adapter '{}' removed successfully.", request.name);
}

// Not a server's error: clients that see one would try again.
void check_on(const RuntimeAdapters& runtime) {
  if (runtime.load) return;
  throw RequestError("", ErrorReason::not_enabled,
                     "adapters can't be loaded at run time; --allow-runtime-lora would allow it");
}

// Runs `work` with the body on a worker, so that nothing waits for files.
template <class Request>
void run(const CallPtr& call, Request (*parse)(const Json& body, const RequestTerms& terms),
         std::optional<std::string> (*model_of)(const ModelHost& host, const Request& request),
         std::string (*work)(const HostedModel& model, const Request& request)) {
  on_model(call, [body = take_body(*call), parse, model_of, work, &context = call->context()] {
    const Request request = parse(body(), context.terms);
    return ModelJob{.model = model_of(context.host, request),
                    .run = [work, request](HostedModel& model) -> Continuation {
                      check_on(model.runtime_adapters);
                      return respond_with({.content_type = "text/plain; charset=utf-8",
                                           .body = work(model, request)});
                    }};
  });
}

}  // namespace

void handle_load_adapter(const CallPtr& call) {
  run<LoadAdapterRequest>(
      call, parse_load_adapter_request,
      [](const ModelHost& host, const LoadAdapterRequest& request) {
        host.choose(request.model);  // refuses an unknown one
        return request.model;
      },
      load);
}

// The model that has it; without one the first one says that there is none.
void handle_unload_adapter(const CallPtr& call) {
  run<UnloadAdapterRequest>(
      call, parse_unload_adapter_request,
      [](const ModelHost& host, const UnloadAdapterRequest& request) {
        return host.find(request.name) ? std::optional(request.name) : std::nullopt;
      },
      unload);
}

}  // namespace paceline
