#include "server/route_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "base/suggest.h"
#include "protocol/adapter_requests.h"
#include "protocol/model_requests.h"
#include "protocol/ollama_request.h"
#include "protocol/text_requests.h"
#include "server/routes.h"

namespace paceline {
namespace {

constexpr Route kRoutes[] = {
    {.method = "POST",
     .path = "/v1/chat/completions",
     .summary = "Generate the next message of a conversation.",
     .dialect = &kChatDialect,
     .response = "ChatCompletion",
     .chunk = "ChatCompletionChunk",
     .handle = handle_call},
    {.method = "POST",
     .path = "/v1/responses",
     .summary = "Generate an answer to items, in OpenAI's newer API.",
     .dialect = &kResponsesDialect,
     .response = "Response",
     .chunk = "ResponseEvent",
     .handle = handle_call},
    {.method = "POST",
     .path = "/v1/responses/compact",
     .summary = "Make one item of a conversation, which the model summarises.",
     .dialect = &kCompactionDialect,
     .response = "CompactedResponse",
     .handle = handle_call},
    {.method = "POST",
     .path = "/v1/responses/input_tokens",
     .summary = "Count the tokens of a response's prompt.",
     .dialect = &kInputTokensDialect,
     .response = "InputTokens",
     .handle = handle_call},
    {.method = "GET",
     .path = "/v1/responses/*/input_items",
     .summary = "List the items of a stored response's request.",
     .response = "ItemList",
     .handle = list_input_items},
    {.method = "POST",
     .path = "/v1/responses/*/cancel",
     .summary = "End a response in the background.",
     .response = "Response",
     .handle = cancel_response},
    {.method = "GET",
     .path = "/v1/responses/*",
     .summary = "Read a stored response.",
     .response = "Response",
     .handle = show_response},
    {.method = "DELETE",
     .path = "/v1/responses/*",
     .summary = "Delete a stored response.",
     .response = "DeletedResponse",
     .handle = delete_response},
    {.method = "POST",
     .path = "/v1/completions",
     .summary = "Continue a text.",
     .dialect = &kCompletionDialect,
     .response = "Completion",
     .chunk = "CompletionChunk",
     .handle = handle_call},
    {.method = "POST",
     .path = "/v1/messages",
     .summary = "Generate the next message of a conversation, as Anthropic's API does.",
     .dialect = &kMessagesDialect,
     .response = "AnthropicMessage",
     .chunk = "AnthropicEvent",
     .handle = handle_call},
    {.method = "POST",
     .path = "/v1/messages/count_tokens",
     .summary = "Count the tokens of a conversation, as Anthropic's API does.",
     .dialect = &kMessageCountDialect,
     .response = "AnthropicCount",
     .handle = handle_call},
    {.method = "POST",
     .path = "/generate",
     .summary = "Continue a text, in Paceline's own format.",
     .dialect = &kGenerateDialect,
     .response = "Generated",
     .chunk = "GeneratedChunk",
     .handle = handle_call},
    {.method = "POST",
     .path = "/completion",
     .summary = "Continue a text, as llama.cpp's server does.",
     .dialect = &kLlamaDialect,
     .response = "LlamaResults",
     .chunk = "LlamaChunk",
     .handle = handle_call},
    {.method = "POST",
     .path = "/completions",
     .summary = "The same as /completion.",
     .dialect = &kLlamaDialect,
     .response = "LlamaResults",
     .chunk = "LlamaChunk",
     .handle = handle_call},
    {.method = "POST",
     .path = "/infill",
     .summary = "Fill the gap between a prefix and a suffix, as llama.cpp's server does.",
     .dialect = &kInfillDialect,
     .response = "LlamaResults",
     .chunk = "LlamaChunk",
     .handle = handle_call},
    {.method = "POST",
     .path = "/chat/completions",
     .summary = "The same as /v1/chat/completions.",
     .dialect = &kChatDialect,
     .response = "ChatCompletion",
     .chunk = "ChatCompletionChunk",
     .handle = handle_call},
    {.method = "POST",
     .path = "/v1/embeddings",
     .summary = "Make a vector of each text.",
     .dialect = &kEmbeddingDialect,
     .response = "Embeddings",
     .handle = handle_call},
    {.method = "POST",
     .path = "/v1/decisions",
     .summary = "Answer typed questions about one input with probabilities.",
     .dialect = &kDecisionDialect,
     .response = "Decisions",
     .handle = handle_call},
    {.method = "POST",
     .path = "/v1/systemone",
     .summary = "Answer typed questions about one input, as TypeSafe's API does.",
     .dialect = &kSystemOneDialect,
     .response = "SystemOne",
     .handle = handle_call},
    {.method = "POST",
     .path = "/v1/classify",
     .summary = "Choose a label, or draw one token.",
     .dialect = &kClassificationDialect,
     .response = "Classifications",
     .handle = handle_call},
    {.method = "POST",
     .path = "/v1/score_tokens",
     .summary = "Compute the log-probability of each token of a text.",
     .dialect = &kTokenScoreDialect,
     .response = "TokenScores",
     .handle = handle_call},
    {.method = "POST",
     .path = "/v1/score",
     .summary = "Score pairs of texts, as vLLM's server does.",
     .dialect = &kPairScoreDialect,
     .response = "PairScores",
     .handle = handle_call},
    {.method = "POST",
     .path = "/v1/rerank",
     .summary = "Order documents by what they say about a query, as Jina's and Cohere's APIs do.",
     .dialect = &kRerankDialect,
     .response = "Reranked",
     .handle = handle_call},
    {.method = "POST",
     .path = "/rerank",
     .summary = "The same as /v1/rerank.",
     .dialect = &kRerankDialect,
     .response = "Reranked",
     .handle = handle_call},
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
     .summary = "List the models and which of them are loaded.",
     .response = "ModelStates",
     .handle = list_model_states},
    {.method = "POST",
     .path = "/models/load",
     .summary = "Begin to load a model.",
     .body = model_request_fields,
     .response = "Success",
     .handle = handle_load_model},
    {.method = "POST",
     .path = "/models/unload",
     .summary = "Unload a model once its requests have ended.",
     .body = model_request_fields,
     .response = "Success",
     .handle = handle_unload_model},
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
    {.method = "POST",
     .path = "/api/chat",
     .summary = "Generate the next message of a conversation, as Ollama does.",
     .dialect = &kOllamaChatDialect,
     .response = "OllamaChat",
     .chunk = "OllamaChat",
     .handle = handle_call},
    {.method = "POST",
     .path = "/api/generate",
     .summary = "Answer a prompt, or continue a text, as Ollama does.",
     .dialect = &kOllamaGenerateDialect,
     .response = "OllamaGenerated",
     .chunk = "OllamaGenerated",
     .handle = handle_call},
    {.method = "POST",
     .path = "/api/embed",
     .summary = "Make a vector of each text, as Ollama does.",
     .dialect = &kOllamaEmbedDialect,
     .response = "OllamaEmbeddings",
     .handle = handle_call},
    {.method = "POST",
     .path = "/api/embeddings",
     .summary = "Make a vector of a text, as Ollama did before /api/embed.",
     .dialect = &kOllamaEmbeddingsDialect,
     .response = "OllamaEmbedding",
     .handle = handle_call},
    {.method = "POST",
     .path = "/api/show",
     .summary = "Describe a model, as Ollama does.",
     .dialect = &kOllamaListDialect,
     .body = ollama_show_fields,
     .response = "OllamaModel",
     .handle = show_ollama_model},
    {.method = "GET",
     .path = "/api/tags",
     .summary = "List the models, as Ollama does.",
     .dialect = &kOllamaListDialect,
     .response = "OllamaModels",
     .handle = list_ollama_models},
    {.method = "GET",
     .path = "/api/ps",
     .summary = "List the loaded models, as Ollama does.",
     .dialect = &kOllamaListDialect,
     .response = "OllamaModels",
     .handle = list_loaded_ollama_models},
    {.method = "GET",
     .path = "/api/version",
     .summary = "The version of Ollama's API, then the server's own.",
     .dialect = &kOllamaListDialect,
     .response = "OllamaVersion",
     .handle = show_ollama_version},
    {.method = "POST",
     .path = "/api/pull",
     .summary = "Refused: models are chosen when the server starts.",
     .dialect = &kOllamaListDialect,
     .handle = refuse_management},
    {.method = "POST",
     .path = "/api/push",
     .summary = "Refused, as /api/pull.",
     .dialect = &kOllamaListDialect,
     .handle = refuse_management},
    {.method = "POST",
     .path = "/api/create",
     .summary = "Refused, as /api/pull.",
     .dialect = &kOllamaListDialect,
     .handle = refuse_management},
    {.method = "POST",
     .path = "/api/copy",
     .summary = "Refused, as /api/pull.",
     .dialect = &kOllamaListDialect,
     .handle = refuse_management},
    {.method = "DELETE",
     .path = "/api/delete",
     .summary = "Refused, as /api/pull.",
     .dialect = &kOllamaListDialect,
     .handle = refuse_management},
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
     .response = "OpenApi",
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
      fmt::format("{} {}: no such route{} Here are POST /v1/chat/completions, POST "
                  "/v1/completions, POST /v1/embeddings, GET /v1/models; GET /openapi.json "
                  "lists all",
                  method, path.substr(0, kMostShown), nearest.empty() ? "." : nearest)};
}

}  // namespace paceline
