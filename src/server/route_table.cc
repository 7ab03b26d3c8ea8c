#include "server/route_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "protocol/adapter_requests.h"
#include "protocol/chat_request.h"
#include "protocol/classification_request.h"
#include "protocol/completion_request.h"
#include "protocol/embedding_request.h"
#include "protocol/generate_response.h"
#include "protocol/llama_request.h"
#include "protocol/pair_score_request.h"
#include "protocol/text_requests.h"
#include "protocol/token_score_request.h"
#include "server/routes.h"

namespace paceline {
namespace {

constexpr Route kRoutes[] = {
    {.method = "POST",
     .path = "/v1/chat/completions",
     .summary = "Generate the next message of a conversation.",
     .body = chat_request_fields,
     .response = "ChatCompletion",
     .chunk = "ChatCompletionChunk",
     .handle = handle_chat},
    {.method = "POST",
     .path = "/v1/completions",
     .summary = "Continue a text.",
     .body = completion_request_fields,
     .response = "Completion",
     .chunk = "CompletionChunk",
     .handle = handle_completion},
    {.method = "POST",
     .path = "/generate",
     .summary = "Continue a text, in Paceline's own format.",
     .body = generate_request_fields,
     .response = "Generated",
     .chunk = "GeneratedChunk",
     .handle = handle_generate},
    {.method = "POST",
     .path = "/completion",
     .summary = "Continue a text, as llama.cpp's server does.",
     .body = llama_request_fields,
     .response = "LlamaResults",
     .chunk = "LlamaChunk",
     .handle = handle_llama_completion},
    {.method = "POST",
     .path = "/completions",
     .summary = "The same as /completion.",
     .body = llama_request_fields,
     .response = "LlamaResults",
     .chunk = "LlamaChunk",
     .handle = handle_llama_completion},
    {.method = "POST",
     .path = "/infill",
     .summary = "Fill the gap between a prefix and a suffix, as llama.cpp's server does.",
     .body = infill_request_fields,
     .response = "LlamaResults",
     .chunk = "LlamaChunk",
     .handle = handle_infill},
    {.method = "POST",
     .path = "/chat/completions",
     .summary = "The same as /v1/chat/completions.",
     .body = chat_request_fields,
     .response = "ChatCompletion",
     .chunk = "ChatCompletionChunk",
     .handle = handle_chat},
    {.method = "POST",
     .path = "/v1/embeddings",
     .summary = "Make a vector of each text.",
     .body = embedding_request_fields,
     .response = "Embeddings",
     .handle = handle_embeddings},
    {.method = "POST",
     .path = "/v1/classify",
     .summary = "Choose a label, or draw one token.",
     .body = classification_request_fields,
     .response = "Classifications",
     .handle = handle_classify},
    {.method = "POST",
     .path = "/v1/score_tokens",
     .summary = "Compute the log-probability of each token of a text.",
     .body = token_score_request_fields,
     .response = "TokenScores",
     .handle = handle_score_tokens},
    {.method = "POST",
     .path = "/v1/score",
     .summary = "Score pairs of texts, as vLLM's server does.",
     .body = pair_score_request_fields,
     .response = "PairScores",
     .handle = handle_score},
    {.method = "POST",
     .path = "/v1/rerank",
     .summary = "Order documents by what they say about a query, as Jina's and Cohere's APIs do.",
     .body = rerank_request_fields,
     .response = "Reranked",
     .handle = handle_rerank},
    {.method = "POST",
     .path = "/rerank",
     .summary = "The same as /v1/rerank.",
     .body = rerank_request_fields,
     .response = "Reranked",
     .handle = handle_rerank},
    {.method = "POST",
     .path = "/tokenize",
     .summary = "Convert text to tokens.",
     .body = tokenize_request_fields,
     .response = "Tokens",
     .handle = handle_tokenize},
    {.method = "POST",
     .path = "/detokenize",
     .summary = "Convert tokens to text.",
     .body = detokenize_request_fields,
     .response = "Text",
     .handle = handle_detokenize},
    {.method = "POST",
     .path = "/apply-template",
     .summary = "Render a conversation with the chat template.",
     .body = template_request_fields,
     .response = "Prompt",
     .handle = handle_apply_template},
    {.method = "POST",
     .path = "/v1/load_lora_adapter",
     .summary = "Load a LoRA adapter, with --allow-runtime-lora.",
     .body = load_adapter_request_fields,
     .media_type = "text/plain",
     .handle = handle_load_adapter},
    {.method = "POST",
     .path = "/v1/unload_lora_adapter",
     .summary = "Remove a LoRA adapter, with --allow-runtime-lora.",
     .body = unload_adapter_request_fields,
     .media_type = "text/plain",
     .handle = handle_unload_adapter},
    {.method = "GET",
     .path = "/v1/models",
     .summary = "List the models.",
     .response = "Models",
     .handle = list_models},
    {.method = "GET",
     .path = "/v1/models/*",
     .summary = "Retrieve model metadata.",
     .response = "Model",
     .handle = show_model},
    {.method = "GET",
     .path = "/models",
     .summary = "The same as /v1/models.",
     .response = "Models",
     .handle = list_models},
    {.method = "GET",
     .path = "/props",
     .summary = "Describe the server, as llama.cpp's server does.",
     .response = "LlamaProps",
     .handle = show_props},
    {.method = "GET",
     .path = "/slots",
     .summary = "List what is computed at once, as llama.cpp's server does.",
     .response = "LlamaSlots",
     .handle = show_slots},
    {.method = "GET",
     .path = "/v1/requests",
     .summary = "Show running and waiting requests, recent steps and the K/V cache's blocks.",
     .response = "Requests",
     .handle = show_requests},
    {.method = "GET",
     .path = "/metrics",
     .summary = "Metrics in Prometheus' text format.",
     .media_type = "text/plain",
     .handle = show_metrics},
    {.method = "GET",
     .path = "/openapi.json",
     .summary = "The OpenAPI description of this API.",
     .handle = show_openapi},
    {.method = "GET",
     .path = "/version",
     .summary = "Show the version.",
     .response = "Version",
     .handle = show_version},
    {.method = "GET",
     .path = "/health",
     .summary = "200 while the engine makes progress.",
     .access = RouteAccess::open,
     .response = "Status",
     .handle = show_health},
    {.method = "GET",
     .path = "/v1/health",
     .summary = "The same as /health.",
     .access = RouteAccess::open,
     .response = "Status",
     .handle = show_health},
    {.method = "GET",
     .path = "/live",
     .summary = "200 while the process runs.",
     .access = RouteAccess::open,
     .response = "Status",
     .handle = show_live},
    {.method = "GET",
     .path = "/ready",
     .summary = "200 while the server accepts requests.",
     .access = RouteAccess::open,
     .response = "Status",
     .handle = show_ready},
    {.method = "GET",
     .path = "/",
     .summary = "The web page.",
     .access = RouteAccess::open,
     .media_type = "text/html",
     .handle = show_page},
    {.method = "GET",
     .path = "/page/*",
     .summary = "The web page's files.",
     .access = RouteAccess::open,
     .media_type = "*/*",
     .handle = show_page},
};

bool matches(const Route& route, std::string_view path) {
  if (!route.path.ends_with('*')) return route.path == path;
  const std::string_view prefix = route.path.substr(0, route.path.size() - 1);
  return path.size() > prefix.size() && path.starts_with(prefix);
}

std::string all_routes() {
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
                    .message = fmt::format("{} {}: the method must be {}", method, path, allow),
                    .type = "invalid_request_error",
                    .param = {},
                    .code = "method_not_allowed"};
  }
  // Routes of OpenAI's API get no 501: its clients retry every status from 500 on.
  return ApiError{.status = 404,
                  .message = fmt::format("{} {}: no such route; this server has {}", method, path,
                                         all_routes()),
                  .type = "invalid_request_error",
                  .param = {},
                  .code = "unknown_url"};
}

}  // namespace paceline
