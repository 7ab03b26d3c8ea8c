// GET /openapi.json: the routes, the fields of their requests from the tables that read them, and
// what they answer.
#include <algorithm>
#include <iterator>
#include <string>

#include "base/json_writer.h"
#include "base/version.h"
#include "protocol/answer_schemas.h"
#include "protocol/chat_request.h"
#include "protocol/classification_request.h"
#include "protocol/completion_request.h"
#include "protocol/field_schema.h"
#include "protocol/generate_answer.h"
#include "protocol/llama_request.h"
#include "protocol/score_request.h"
#include "protocol/text_requests.h"
#include "server/route_table.h"
#include "server/routes.h"

namespace paceline {
namespace {

// What a route takes and answers, by the names of answer_schemas_json().
struct RouteBodies {
  std::string_view path;
  FieldList (*fields)() = nullptr;
  std::string_view answer = {};      // of JSON
  std::string_view chunk = {};       // of each event of a streamed answer
  std::string_view media_type = {};  // of an answer that isn't JSON
};

constexpr RouteBodies kBodies[] = {
    {"/v1/chat/completions", chat_request_fields, "ChatCompletion", "ChatCompletionChunk"},
    {"/v1/completions", completion_request_fields, "Completion", "CompletionChunk"},
    {"/completion", llama_request_fields, "LlamaResults", "LlamaChunk"},
    {"/completions", llama_request_fields, "LlamaResults", "LlamaChunk"},
    {"/infill", infill_request_fields, "LlamaResults", "LlamaChunk"},
    {"/chat/completions", chat_request_fields, "ChatCompletion", "ChatCompletionChunk"},
    {"/models", nullptr, "Models"},
    {"/props", nullptr, "LlamaProps"},
    {"/slots", nullptr, "LlamaSlots"},
    {"/v1/health", nullptr, "Status"},
    {"/generate", generate_request_fields, "Generated", "GeneratedChunk"},
    {"/v1/classify", classification_request_fields, "Classifications"},
    {"/v1/score", score_request_fields, "Scores"},
    {"/tokenize", tokenize_request_fields, "Tokens"},
    {"/detokenize", detokenize_request_fields, "Text"},
    {"/apply-template", template_request_fields, "Prompt"},
    {"/v1/models", nullptr, "Models"},
    {"/v1/models/*", nullptr, "Model"},
    {"/v1/requests", nullptr, "Requests"},
    {"/version", nullptr, "Version"},
    {"/health", nullptr, "Status"},
    {"/live", nullptr, "Status"},
    {"/ready", nullptr, "Status"},
    {.path = "/metrics", .media_type = "text/plain"},
    {.path = "/", .media_type = "text/html"},
    {.path = "/page/*", .media_type = "*/*"},
};

enum class ErrorReach : uint8_t { every_route, with_key, with_body, with_body_or_name };

struct ErrorDoc {
  std::string_view status;
  ErrorReach reach = ErrorReach::every_route;
  std::string_view help;
};

constexpr ErrorDoc kErrors[] = {
    {"400", ErrorReach::every_route,
     "A field is wrong (invalid_value, context_length_exceeded), unknown (unknown_parameter), not "
     "offered (unsupported_parameter) or missing (missing_required_parameter); the body is no JSON "
     "(invalid_value); or it is no HTTP (malformed_request)."},
    {"401", ErrorReach::with_key, "No API key, or a wrong one (invalid_api_key)."},
    {"403", ErrorReach::every_route,
     "The Host header has another name than this machine's (host_not_allowed)."},
    {"404", ErrorReach::with_body_or_name,
     "No such model (model_not_found) or file (unknown_url)."},
    {"405", ErrorReach::every_route,
     "The route has another method, named by Allow (method_not_allowed)."},
    {"408", ErrorReach::every_route, "The request came too slowly (request_timeout)."},
    {"413", ErrorReach::every_route,
     "The body is longer than --max-body-size, 8 MiB unless told (body_too_large)."},
    {"414", ErrorReach::every_route, "The URL is longer than 8 KiB (uri_too_long)."},
    {"415", ErrorReach::with_body,
     "The Content-Type is not application/json (unsupported_media_type)."},
    {"429", ErrorReach::with_body, "No room (queue_full); Retry-After says when to try again."},
    {"431", ErrorReach::every_route,
     "The header is longer than --max-header-size, 16 KiB unless told, one line of it than half of "
     "that, or it has more than 100 lines (headers_too_large)."},
    {"500", ErrorReach::every_route, "A fault of the server (internal_error, numerical_error)."},
    {"501", ErrorReach::with_body, "The model can't do this (feature_disabled)."},
    {"503", ErrorReach::every_route,
     "Not now (loading, draining, queue_timeout, engine_unhealthy, too_many_connections); "
     "Retry-After says when to try again."},
    {"504", ErrorReach::with_body,
     "The request took longer than --request-timeout (request_timeout)."},
};

const RouteBodies* bodies_of(const Route& route) {
  const auto* found = std::find_if(std::begin(kBodies), std::end(kBodies),
                                   [&](const auto& one) { return one.path == route.path; });
  return found == std::end(kBodies) ? nullptr : found;
}

bool reaches(const ErrorDoc& error, const Route& route) {
  switch (error.reach) {
    case ErrorReach::every_route:
      return true;
    case ErrorReach::with_key:
      return route.access == RouteAccess::key;
    case ErrorReach::with_body:
      return route.computes;
    case ErrorReach::with_body_or_name:
      return route.computes || route.path.ends_with('*');
  }
  return false;
}

void write_reference(JsonWriter& writer, std::string_view kind, std::string_view name) {
  std::string path = "#/components/";
  path.append(kind).append("/").append(name);
  writer.begin_object().member("$ref", path).end_object();
}

void write_media(JsonWriter& writer, std::string_view type, std::string_view schema) {
  writer.key(type).begin_object();
  if (!schema.empty()) {
    writer.key("schema");
    write_reference(writer, "schemas", schema);
  }
  writer.end_object();
}

void write_ok(JsonWriter& writer, const RouteBodies* bodies) {
  writer.key("200").begin_object().member("description", "The answer.");
  writer.key("content").begin_object();
  if (bodies == nullptr) {
    write_media(writer, "application/json", "");
  } else if (!bodies->media_type.empty()) {
    write_media(writer, bodies->media_type, "");
  } else {
    write_media(writer, "application/json", bodies->answer);
    if (!bodies->chunk.empty()) write_media(writer, "text/event-stream", bodies->chunk);
  }
  writer.end_object().end_object();
}

void write_answers(JsonWriter& writer, const Route& route, const RouteBodies* bodies) {
  writer.key("responses").begin_object();
  write_ok(writer, bodies);
  for (const ErrorDoc& error : kErrors) {
    if (!reaches(error, route)) continue;
    writer.key(error.status);
    write_reference(writer, "responses", error.status);
  }
  writer.end_object();
}

void write_body(JsonWriter& writer, const FieldList& fields, const RequestTerms& terms) {
  writer.key("requestBody").begin_object().member("required", true);
  writer.key("content").begin_object().key("application/json").begin_object().key("schema");
  write_fields_schema(writer, fields, terms);
  writer.end_object().end_object().end_object();
}

// "/v1/models/*" -> "/v1/models/{name}"
std::string openapi_path(std::string_view path) {
  std::string text(path);
  if (text.ends_with('*')) text.replace(text.size() - 1, 1, "{name}");
  return text;
}

void write_route(JsonWriter& writer, const Route& route, const RequestTerms& terms) {
  const RouteBodies* bodies = bodies_of(route);
  writer.key(openapi_path(route.path)).begin_object();
  writer.key(route.method == "GET" ? "get" : "post").begin_object();
  writer.member("summary", route.help);
  if (route.access == RouteAccess::open) writer.key("security").begin_array().end_array();
  if (route.path.ends_with('*')) {
    writer.key("parameters").begin_array().begin_object().member("name", "name");
    writer.member("in", "path").member("required", true).key("schema").begin_object();
    writer.member("type", "string").end_object().end_object().end_array();
  }
  if (bodies != nullptr && bodies->fields != nullptr) write_body(writer, bodies->fields(), terms);
  write_answers(writer, route, bodies);
  writer.end_object().end_object();
}

void write_errors(JsonWriter& writer) {
  writer.key("responses").begin_object();
  for (const ErrorDoc& error : kErrors) {
    writer.key(error.status).begin_object().member("description", error.help);
    writer.key("content").begin_object();
    write_media(writer, "application/json", "Error");
    writer.end_object().end_object();
  }
  writer.end_object();
}

void write_components(JsonWriter& writer) {
  writer.key("components").begin_object();
  writer.key("securitySchemes").begin_object().key("key").begin_object();
  writer.member("type", "http").member("scheme", "bearer").end_object().end_object();
  write_errors(writer);
  writer.key("schemas").raw(answer_schemas_json()).end_object();
}

}  // namespace

void show_openapi(const CallPtr& call) {
  const RequestTerms& terms = call->context().rules.terms;
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().member("openapi", "3.1.0").key("info").begin_object();
  writer.member("title", "Paceline").member("version", kVersion).end_object();
  writer.key("security").begin_array().begin_object().key("key").begin_array().end_array();
  writer.end_object().end_array().key("paths").begin_object();
  for (const Route& route : route_table()) write_route(writer, route, terms);
  writer.end_object();
  write_components(writer);
  writer.end_object();
  call->respond_json(std::move(json));
}

}  // namespace paceline
