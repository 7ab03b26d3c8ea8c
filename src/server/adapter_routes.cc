// /v1/load_lora_adapter and /v1/unload_lora_adapter: adapters come and go while streams go on.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/error.h"
#include "engine/adapter_set.h"
#include "protocol/adapter_requests.h"
#include "server/routes.h"
#include "server/worker_call.h"

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
    throw invalid_field("lora_path", fmt::format("{} isn't in the server's directory of adapters",
                                                 asked.substr(0, kLongestName)));
  }
  return path.string();
}

void check_name(const LoadAdapterRequest& request, const RequestRules& rules,
                const AdapterSet& adapters) {
  const std::string& name = request.name;
  if (name.empty() || name.size() > kLongestName) {
    throw invalid_field("lora_name",
                        fmt::format("{} bytes, expected 1 to {}", name.size(), kLongestName));
  }
  const auto& own = rules.model_names;
  if (std::find(own.begin(), own.end(), name) != own.end()) {
    throw invalid_field("lora_name", fmt::format("{} is the model's name", name));
  }
  if (!request.replaces && adapters.find(name) != nullptr) {
    throw invalid_field("lora_name",
                        fmt::format("{} is loaded already; load_inplace would replace it", name));
  }
}

std::string load(const RuntimeAdapters& runtime, const RequestRules& rules,
                 const LoadAdapterRequest& request) {
  check_name(request, rules, *runtime.adapters);
  const std::string path = resolved(request.path, runtime.directory);
  try {
    runtime.adapters->add_at_run_time(runtime.load(request.name, path), runtime.most);
  } catch (const Error& error) {
    throw invalid_field("lora_path", error.what());
  }
  return fmt::format("Success: LoRA adapter '{}' added successfully.", request.name);
}

std::string unload(const RuntimeAdapters& runtime, const UnloadAdapterRequest& request) {
  if (!runtime.adapters->remove(request.name)) {
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
void run(const CallPtr& call, std::function<std::string(const Json& body)> work) {
  on_worker(call, [body = take_body(*call), work = std::move(work)]() -> Continuation {
    auto text = std::make_shared<std::string>(work(body()));
    return [text](const CallPtr& ready) {
      ready->respond({.content_type = "text/plain; charset=utf-8", .body = std::move(*text)});
    };
  });
}

}  // namespace

void handle_load_adapter(const CallPtr& call) {
  const RuntimeAdapters& runtime = call->model()->runtime_adapters;
  const RequestRules& rules = call->model()->rules;
  run(call, [&runtime, &rules](const Json& body) {
    const LoadAdapterRequest request = parse_load_adapter_request(body, rules.terms);
    check_on(runtime);
    return load(runtime, rules, request);
  });
}

void handle_unload_adapter(const CallPtr& call) {
  const RuntimeAdapters& runtime = call->model()->runtime_adapters;
  const RequestRules& rules = call->model()->rules;
  run(call, [&runtime, &rules](const Json& body) {
    const UnloadAdapterRequest request = parse_unload_adapter_request(body, rules.terms);
    check_on(runtime);
    return unload(runtime, request);
  });
}

}  // namespace paceline
