#include "server/route_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "server/routes.h"

namespace paceline {
namespace {

constexpr Route kRoutes[] = {
    {"POST", "/v1/chat/completions", RouteAccess::key, true, "Answer a conversation.", answer_chat},
    {"POST", "/v1/completions", RouteAccess::key, true, "Continue a text.", answer_completion},
    {"POST", "/generate", RouteAccess::key, true, "Continue a text, Paceline's own shape.",
     answer_native},
    {"POST", "/completion", RouteAccess::key, true, "Continue a text, as llama.cpp's server does.",
     answer_llama_completion},
    {"POST", "/completions", RouteAccess::key, true, "The same as /completion.",
     answer_llama_completion},
    {"POST", "/infill", RouteAccess::key, true,
     "Fill the gap between a prefix and a suffix, as llama.cpp's server does.", answer_infill},
    {"POST", "/chat/completions", RouteAccess::key, true, "The same as /v1/chat/completions.",
     answer_chat},
    {"POST", "/v1/classify", RouteAccess::key, true, "Draw a token or choose a label.",
     answer_classification},
    {"POST", "/v1/score", RouteAccess::key, true, "Tell how likely each token is.", answer_score},
    {"POST", "/tokenize", RouteAccess::key, true, "Turn text into tokens.", tokenize_text},
    {"POST", "/detokenize", RouteAccess::key, true, "Turn tokens into text.", detokenize_ids},
    {"POST", "/apply-template", RouteAccess::key, true, "Make a chat's prompt.", apply_template},
    {"GET", "/v1/models", RouteAccess::key, false, "List the model.", list_models},
    {"GET", "/v1/models/*", RouteAccess::key, false, "Tell of the model.", show_model},
    {"GET", "/models", RouteAccess::key, false, "The same as /v1/models.", list_models},
    {"GET", "/props", RouteAccess::key, false, "Describe the server, as llama.cpp's server does.",
     show_props},
    {"GET", "/slots", RouteAccess::key, false,
     "List what is computed at once, as llama.cpp's server does.", show_slots},
    {"GET", "/v1/requests", RouteAccess::key, false, "Show what the engine does.", show_requests},
    {"GET", "/metrics", RouteAccess::key, false, "Figures for Prometheus.", show_metrics},
    {"GET", "/openapi.json", RouteAccess::key, false, "This API, as OpenAPI.", show_openapi},
    {"GET", "/version", RouteAccess::key, false, "Tell the version.", show_version},
    {"GET", "/health", RouteAccess::open, false, "200 while the engine steps.", show_health},
    {"GET", "/v1/health", RouteAccess::open, false, "The same as /health.", show_health},
    {"GET", "/live", RouteAccess::open, false, "200 while the process runs.", show_live},
    {"GET", "/ready", RouteAccess::open, false, "200 while requests are taken.", show_ready},
    {"GET", "/", RouteAccess::open, false, "The page.", show_page},
    {"GET", "/page/*", RouteAccess::open, false, "The page's files.", show_page},
};

// Of the APIs of OpenAI and llama.cpp's server; none of it is offered.
constexpr std::string_view kKnownRoutes[] = {
    "/embedding",        "/embeddings",       "/lora-adapters",  "/rerank",
    "/reranking",        "/v1/rerank",        "/v1/reranking",   "/v1/assistants",
    "/v1/audio",         "/v1/batches",       "/v1/chat",        "/v1/containers",
    "/v1/conversations", "/v1/embeddings",    "/v1/evals",       "/v1/files",
    "/v1/fine_tuning",   "/v1/images",        "/v1/moderations", "/v1/organization",
    "/v1/projects",      "/v1/realtime",      "/v1/responses",   "/v1/threads",
    "/v1/uploads",       "/v1/vector_stores", "/v1/videos",
};

bool matches(const Route& route, std::string_view path) {
  if (!route.path.ends_with('*')) return route.path == path;
  const std::string_view prefix = route.path.substr(0, route.path.size() - 1);
  return path.size() > prefix.size() && path.starts_with(prefix);
}

bool is_known_path(std::string_view path) {
  return std::any_of(std::begin(kKnownRoutes), std::end(kKnownRoutes), [&](const auto known) {
    return path.starts_with(known) && (path.size() == known.size() || path[known.size()] == '/');
  });
}

std::string offered() {
  std::vector<std::string> all;
  for (const Route& route : kRoutes) all.push_back(fmt::format("{} {}", route.method, route.path));
  return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace

std::span<const Route> route_table() { return kRoutes; }

std::variant<const Route*, ApiError> find_route(std::string_view method, std::string_view path,
                                                std::string& allow) {
  for (const Route& route : kRoutes) {
    if (!matches(route, path)) continue;
    if (route.method == method) return &route;
    if (!allow.empty()) allow += ", ";
    allow += route.method == "GET" ? "GET, HEAD" : route.method;
  }
  if (!allow.empty()) {
    return ApiError{.status = 405,
                    .message = fmt::format("{} {}: the method is {}", method, path, allow),
                    .type = "invalid_request_error",
                    .param = {},
                    .code = "method_not_allowed"};
  }
  if (is_known_path(path)) {
    return ApiError{
        .status = 501,
        .message = fmt::format("{} is not offered by this server, which has {}", path, offered()),
        .type = "not_supported_error",
        .param = {},
        .code = "feature_disabled"};
  }
  return ApiError{.status = 404,
                  .message = fmt::format("{} {}: no such route", method, path),
                  .type = "invalid_request_error",
                  .param = {},
                  .code = "unknown_url"};
}

}  // namespace paceline
