#include "server/route_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "base/suggest.h"
#include "protocol/ollama_request.h"
#include "protocol/plain_requests.h"
#include "server/routes.h"

namespace paceline {
namespace {

// Rows of the table. A call is what handle_call does with a body of the dialect; without `chunk` it
// has no stream.
constexpr Route call(std::string_view path, std::string_view summary, const Dialect& dialect,
                     std::string_view response, std::string_view chunk = {}) {
  return {.method = "POST",
          .path = path,
          .summary = summary,
          .dialect = &dialect,
          .response = response,
          .chunk = chunk,
          .handle = handle_call};
}
constexpr Route route(std::string_view method, std::string_view path, std::string_view summary,
                      void (*handle)(const CallPtr& call), std::string_view response,
                      Route row = {}) {
  row.method = method;
  row.path = path;
  row.summary = summary;
  row.response = response;
  row.handle = handle;
  return row;
}

constexpr Route kRoutes[] = {
    call("/v1/chat/completions", "Generate the next message of a conversation.", kChatDialect,
         "ChatCompletion", "ChatCompletionChunk"),
    call("/v1/responses", "Generate an answer to items, in OpenAI's newer API.", kResponsesDialect,
         "Response", "ResponseEvent"),
    call("/v1/responses/compact", "Make one item of a conversation, which the model summarises.",
         kCompactionDialect, "CompactedResponse"),
    call("/v1/responses/input_tokens", "Count the tokens of a response's prompt.",
         kInputTokensDialect, "InputTokens"),
    route("GET", "/v1/responses/*/input_items", "List the items of a stored response's request.",
          list_input_items, "ItemList"),
    route("POST", "/v1/responses/*/cancel", "End a response in the background.", cancel_response,
          "Response"),
    route("GET", "/v1/responses/*", "Read a stored response.", show_response, "Response"),
    route("DELETE", "/v1/responses/*", "Delete a stored response.", delete_response,
          "DeletedResponse"),
    call("/v1/completions", "Continue a text.", kCompletionDialect, "Completion",
         "CompletionChunk"),
    call("/v1/messages", "Generate the next message of a conversation, as Anthropic's API does.",
         kMessagesDialect, "AnthropicMessage", "AnthropicEvent"),
    call("/v1/messages/count_tokens",
         "Count the tokens of a conversation, as Anthropic's API does.", kMessageCountDialect,
         "AnthropicCount"),
    call("/generate", "Continue a text, in Paceline's own format.", kGenerateDialect, "Generated",
         "GeneratedChunk"),
    call("/completion", "Continue a text, as llama.cpp's server does.", kLlamaDialect,
         "LlamaResults", "LlamaChunk"),
    call("/completions", "The same as /completion.", kLlamaDialect, "LlamaResults", "LlamaChunk"),
    call("/infill", "Fill the gap between a prefix and a suffix, as llama.cpp's server does.",
         kInfillDialect, "LlamaResults", "LlamaChunk"),
    call("/chat/completions", "The same as /v1/chat/completions.", kChatDialect, "ChatCompletion",
         "ChatCompletionChunk"),
    call("/v1/embeddings", "Make a vector of each text.", kEmbeddingDialect, "Embeddings"),
    call("/v1/decisions", "Answer typed questions about one input with probabilities.",
         kDecisionDialect, "Decisions"),
    call("/v1/systemone", "Answer typed questions about one input, as TypeSafe's API does.",
         kSystemOneDialect, "SystemOne"),
    call("/v1/classify", "Choose a label, or draw one token.", kClassificationDialect,
         "Classifications"),
    call("/v1/score_tokens", "Compute the log-probability of each token of a text.",
         kTokenScoreDialect, "TokenScores"),
    call("/v1/score", "Score pairs of texts, as vLLM's server does.", kPairScoreDialect,
         "PairScores"),
    call("/v1/rerank",
         "Order documents by what they say about a query, as Jina's and Cohere's APIs do.",
         kRerankDialect, "Reranked"),
    call("/rerank", "The same as /v1/rerank.", kRerankDialect, "Reranked"),
    route("POST", "/tokenize", "Convert text to tokens.", handle_tokenize, "Tokens",
          {.body = tokenize_request_fields}),
    route("POST", "/detokenize", "Convert tokens to text.", handle_detokenize, "Text",
          {.body = detokenize_request_fields}),
    route("POST", "/apply-template", "Render a conversation with the chat template.",
          handle_apply_template, "Prompt", {.body = template_request_fields}),
    route("POST", "/v1/load_lora_adapter", "Load a LoRA adapter, with --allow-runtime-lora.",
          handle_load_adapter, "",
          {.body = load_adapter_request_fields, .media_type = "text/plain"}),
    route("POST", "/v1/unload_lora_adapter", "Remove a LoRA adapter, with --allow-runtime-lora.",
          handle_unload_adapter, "",
          {.body = unload_adapter_request_fields, .media_type = "text/plain"}),
    route("GET", "/v1/models", "List the models.", list_models, "Models"),
    route("GET", "/v1/models/*", "Retrieve model metadata.", show_model, "Model"),
    route("GET", "/models", "List the models and which of them are loaded.", list_model_states,
          "ModelStates"),
    route("POST", "/models/load", "Begin to load a model.", handle_load_model, "Success",
          {.body = model_request_fields}),
    route("POST", "/models/unload", "Unload a model once its requests have ended.",
          handle_unload_model, "Success", {.body = model_request_fields}),
    route("GET", "/props", "Describe the server, as llama.cpp's server does.", show_props,
          "LlamaProps"),
    route("GET", "/slots", "List what is computed at once, as llama.cpp's server does.", show_slots,
          "LlamaSlots"),
    call("/api/chat", "Generate the next message of a conversation, as Ollama does.",
         kOllamaChatDialect, "OllamaChat", "OllamaChat"),
    call("/api/generate", "Answer a prompt, or continue a text, as Ollama does.",
         kOllamaGenerateDialect, "OllamaGenerated", "OllamaGenerated"),
    call("/api/embed", "Make a vector of each text, as Ollama does.", kOllamaEmbedDialect,
         "OllamaEmbeddings"),
    call("/api/embeddings", "Make a vector of a text, as Ollama did before /api/embed.",
         kOllamaEmbeddingsDialect, "OllamaEmbedding"),
    route("POST", "/api/show", "Describe a model, as Ollama does.", show_ollama_model,
          "OllamaModel", {.dialect = &kOllamaListDialect, .body = ollama_show_fields}),
    route("GET", "/api/tags", "List the models, as Ollama does.", list_ollama_models,
          "OllamaModels", {.dialect = &kOllamaListDialect}),
    route("GET", "/api/ps", "List the loaded models, as Ollama does.", list_loaded_ollama_models,
          "OllamaModels", {.dialect = &kOllamaListDialect}),
    route("GET", "/api/version", "The version of Ollama's API, then the server's own.",
          show_ollama_version, "OllamaVersion", {.dialect = &kOllamaListDialect}),
    route("POST", "/api/pull", "Refused: models are chosen when the server starts.",
          refuse_management, "", {.dialect = &kOllamaListDialect}),
    route("POST", "/api/push", "Refused, as /api/pull.", refuse_management, "",
          {.dialect = &kOllamaListDialect}),
    route("POST", "/api/create", "Refused, as /api/pull.", refuse_management, "",
          {.dialect = &kOllamaListDialect}),
    route("POST", "/api/copy", "Refused, as /api/pull.", refuse_management, "",
          {.dialect = &kOllamaListDialect}),
    route("DELETE", "/api/delete", "Refused, as /api/pull.", refuse_management, "",
          {.dialect = &kOllamaListDialect}),
    route("GET", "/v1/requests",
          "Show running and waiting requests, recent steps and the K/V cache's blocks.",
          show_requests, "Requests"),
    route("GET", "/metrics", "Metrics in Prometheus' text format.", show_metrics, "",
          {.media_type = "text/plain"}),
    route("GET", "/openapi.json", "The OpenAPI description of this API.", show_openapi, "OpenApi"),
    route("GET", "/version", "Show the version.", show_version, "Version"),
    route("GET", "/health", "200 while the engine makes progress.", show_health, "Status",
          {.access = RouteAccess::open}),
    route("GET", "/v1/health", "The same as /health.", show_health, "Status",
          {.access = RouteAccess::open}),
    route("GET", "/live", "200 while the process runs.", show_live, "Status",
          {.access = RouteAccess::open}),
    route("GET", "/ready", "200 while the server accepts requests.", show_ready, "Status",
          {.access = RouteAccess::open}),
    route("GET", "/", "The web page.", show_page, "",
          {.access = RouteAccess::open, .media_type = "text/html"}),
    route("GET", "/page/*", "The web page's files.", show_page, "",
          {.access = RouteAccess::open, .media_type = "*/*"}),
};

bool matches(const Route& route, std::string_view path) {
  const size_t star = route.path.find('*');
  if (star == std::string_view::npos) return route.path == path;
  const std::string_view prefix = route.path.substr(0, star);
  const std::string_view suffix = route.path.substr(star + 1);
  return path.size() > prefix.size() + suffix.size() && path.starts_with(prefix) &&
         path.ends_with(suffix);
}

// "/api/chat" -> {"api", "chat"}, without versions.
std::vector<std::string_view> words_of(std::string_view path) {
  std::vector<std::string_view> words;
  while (!path.empty()) {
    const std::string_view word = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(word.size() + 1, path.size()));
    if (!word.empty() && word != "v1") words.push_back(word);
  }
  return words;
}

// How many words of the two paths are the same, from the end and then from the beginning.
size_t num_shared_words(std::string_view a, std::string_view b) {
  const auto first = words_of(a), second = words_of(b);
  const size_t most = std::min(first.size(), second.size());
  size_t behind = 0, before = 0;
  while (behind < most && first[first.size() - 1 - behind] == second[second.size() - 1 - behind]) {
    ++behind;
  }
  while (before < most && first[before] == second[before]) ++before;
  return std::max(behind, before);
}

// The route that is spelt nearly so, or has most words of the path.
std::string nearest_route(std::string_view path) {
  std::vector<std::string_view> paths;
  for (const Route& route : kRoutes) paths.push_back(route.path);
  std::string_view nearest = closest_name(path, paths).value_or("");
  size_t most = 0;
  for (const std::string_view one : paths) {
    const size_t shared = num_shared_words(path, one);
    if (shared > most) nearest = one;
    most = std::max(most, shared);
  }
  const auto* const route = std::find_if(std::begin(kRoutes), std::end(kRoutes),
                                         [&](const Route& one) { return one.path == nearest; });
  if (nearest.empty() || route == std::end(kRoutes)) return {};
  return fmt::format("; did you mean {} {}?", route->method, route->path);
}

}  // namespace

std::span<const Route> route_table() { return kRoutes; }

const Dialect* dialect_at(std::string_view path) {
  for (const Route& route : kRoutes) {
    if (matches(route, path)) return route.dialect;
  }
  if (path.starts_with("/api/")) return &kOllamaListDialect;
  return path.starts_with("/v1/messages/") ? &kMessagesDialect : nullptr;
}

ErrorAnswer answer_error(const Dialect* dialect, const ApiError& error,
                         std::string_view request_id) {
  return (dialect != nullptr ? dialect->error : openai_error)(error, request_id);
}

std::variant<const Route*, ApiError> find_route(std::string_view method, std::string_view path,
                                                std::string& allow) {
  for (const Route& route : kRoutes) {
    if (!matches(route, path)) continue;
    if (route.method == method) return &route;
    if (!allow.empty()) allow += ", ";
    allow += route.method == "GET" ? "GET, HEAD" : route.method;
  }
  if (!allow.empty()) {
    return ApiError{ErrorReason::method_not_allowed,
                    fmt::format("{} {}: the method must be {}", method, path, allow)};
  }
  constexpr size_t kMostShown = 200;
  const std::string nearest = nearest_route(path.substr(0, kMostShown));
  // Routes of OpenAI's API get no 501: its clients retry every status from 500 on.
  return ApiError{
      ErrorReason::unknown_url,
      fmt::format(
          "{} {}: no such route{} Here are POST /v1/chat/completions, POST /v1/completions, POST "
          "/v1/embeddings, GET /v1/models; GET /openapi.json lists all",
          method, path.substr(0, kMostShown), nearest.empty() ? "." : nearest)};
}

}  // namespace paceline
