// GET /openapi.json: the route table, with the fields of requests from the tables that parse them.
#include <fmt/format.h>

#include <map>
#include <string>

#include "base/json_writer.h"
#include "base/version.h"
#include "protocol/schemas.h"
#include "server/route_table.h"
#include "server/routes.h"

namespace paceline {
namespace {

enum class ErrorReach : uint8_t {
  every_route,
  with_key,
  with_body,
  with_body_or_name,
  with_body_or_refused,  // or of routes that only refuse, which have no response
};

struct ErrorDoc {
  std::string_view status;
  ErrorReach reach = ErrorReach::every_route;
  std::string_view help;
};

constexpr ErrorDoc kErrors[] = {
    {"400", ErrorReach::every_route,
     "A field has a wrong value (invalid_value, context_length_exceeded), is unknown "
     "(unknown_parameter), unsupported (unsupported_parameter) or missing "
     "(missing_required_parameter); the body is not JSON (invalid_value); or the request is not "
     "valid HTTP (malformed_request)."},
    {"401", ErrorReach::with_key, "The API key is missing or wrong (invalid_api_key)."},
    {"403", ErrorReach::every_route,
     "The Host header does not name this machine (host_not_allowed)."},
    {"404", ErrorReach::with_body_or_name,
     "No such model (model_not_found), stored response (response_not_found), route or file "
     "(unknown_url)."},
    {"405", ErrorReach::every_route,
     "The route has another method, listed in Allow (method_not_allowed)."},
    {"408", ErrorReach::every_route, "The request arrived too slowly (request_timeout)."},
    {"413", ErrorReach::every_route,
     "The body is longer than --max-body-size, 8 MiB by default (body_too_large)."},
    {"414", ErrorReach::every_route, "The URL is longer than 8 KiB (uri_too_long)."},
    {"415", ErrorReach::with_body,
     "The Content-Type is not application/json (unsupported_media_type)."},
    {"429", ErrorReach::with_body,
     "The server is full (queue_full); Retry-After says when to try again."},
    {"431", ErrorReach::every_route,
     "The header is longer than --max-header-size, 16 KiB by default, one line of it is longer "
     "than half of that, or it has more than 100 lines (headers_too_large)."},
    {"500", ErrorReach::every_route, "The server failed (internal_error, numerical_error)."},
    {"501", ErrorReach::with_body_or_refused,
     "The model lacks what the request needs, such as a chat template (feature_disabled)."},
    {"503", ErrorReach::every_route,
     "Temporarily unavailable (loading, model_load_failed, draining, queue_timeout, "
     "engine_unhealthy, overloaded, too_many_connections); Retry-After says when to try again."},
    {"504", ErrorReach::with_body,
     "The request took longer than --request-timeout (request_timeout)."},
};

bool reaches(const ErrorDoc& error, const Route& route) {
  switch (error.reach) {
    case ErrorReach::every_route:
      return true;
    case ErrorReach::with_key:
      return route.access == RouteAccess::key;
    case ErrorReach::with_body:
      return route.has_body();
    case ErrorReach::with_body_or_name:
      return route.has_body() || route.names_one();
    case ErrorReach::with_body_or_refused:
      return route.has_body() || (route.method != "GET" && route.response.empty());
  }
  return false;
}

void write_reference(JsonWriter& writer, std::string_view kind, std::string_view name) {
  writer.raw(fmt::format(R"({{"$ref":"#/components/{}/{}"}})", kind, name));
}

void write_media(JsonWriter& writer, std::string_view type, std::string_view schema) {
  writer.key(type).begin_object();
  if (!schema.empty()) {
    writer.key("schema");
    write_reference(writer, "schemas", schema);
  }
  writer.end_object();
}

std::string_view error_schema(const Route& route) {
  return route.dialect == nullptr ? Dialect().error_schema : route.dialect->error_schema;
}

// Events are chunks; a stream that breaks off ends with an error.
void write_events(JsonWriter& writer, const Route& route) {
  writer.key(route.dialect->stream_type).begin_object().key("schema").begin_object();
  writer.key("anyOf").begin_array();
  for (const std::string_view schema : {route.chunk, error_schema(route)}) {
    write_reference(writer, "schemas", schema);
  }
  writer.end_array().end_object().end_object();
}

void write_ok(JsonWriter& writer, const Route& route) {
  writer.key("200").begin_object().member("description", "Success.");
  writer.key("content").begin_object();
  write_media(writer, route.media_type, route.response);
  if (!route.chunk.empty()) write_events(writer, route);
  writer.end_object().end_object();
}

void write_error(JsonWriter& writer, std::string_view status, std::string_view help,
                 std::string_view schema) {
  writer.key(status).begin_object().member("description", help).key("content").begin_object();
  write_media(writer, "application/json", schema);
  writer.end_object().end_object();
}

// The errors of an API with statuses and a shape of its own, by status.
std::map<int, std::string> errors_of_dialect(const Route& route) {
  std::map<int, std::string> errors;
  for (size_t i = 0; i < kNumErrorReasons; ++i) {
    const auto reason = static_cast<ErrorReason>(i);
    const std::string status = std::to_string(openai_kind(reason).status);
    for (const ErrorDoc& error : kErrors) {
      if (error.status != status || !reaches(error, route)) continue;
      std::string& help = errors[route.dialect->error({reason, ""}, {}).status];
      if (help.find(error.help) != std::string::npos) continue;
      help.append(help.empty() ? "" : " ").append(error.help);
    }
  }
  return errors;
}

void write_responses(JsonWriter& writer, const Route& route) {
  writer.key("responses").begin_object();
  write_ok(writer, route);
  if (error_schema(route) != Dialect().error_schema) {
    for (const auto& [status, help] : errors_of_dialect(route)) {
      write_error(writer, std::to_string(status), help, error_schema(route));
    }
  } else {
    for (const ErrorDoc& error : kErrors) {
      if (!reaches(error, route)) continue;
      writer.key(error.status);
      write_reference(writer, "responses", error.status);
    }
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
std::string openapi_path(const Route& route) {
  std::string text(route.path);
  if (route.names_one()) text.replace(text.find('*'), 1, "{name}");
  return text;
}

std::string_view openapi_method(std::string_view method) {
  if (method == "DELETE") return "delete";
  return method == "GET" ? "get" : "post";
}

void write_route(JsonWriter& writer, const Route& route, const RequestTerms& terms) {
  writer.key(openapi_method(route.method)).begin_object();
  writer.member("summary", route.summary);
  if (route.access == RouteAccess::open) writer.key("security").raw("[]");
  if (route.names_one()) {
    writer.key("parameters")
        .raw(R"([{"name":"name","in":"path","required":true,"schema":{"type":"string"}}])");
  }
  if (route.has_body()) write_body(writer, route.fields(), terms);
  write_responses(writer, route);
  writer.end_object();
}

// Those of one path stand together in the table.
void write_routes(JsonWriter& writer, const RequestTerms& terms) {
  writer.key("paths").begin_object();
  std::string_view path;
  for (const Route& route : route_table()) {
    if (route.path != path) {
      if (!path.empty()) writer.end_object();
      path = route.path;
      writer.key(openapi_path(route)).begin_object();
    }
    write_route(writer, route, terms);
  }
  writer.end_object().end_object();
}

void write_components(JsonWriter& writer) {
  writer.key("components").begin_object();
  writer.key("securitySchemes").raw(R"({"key":{"type":"http","scheme":"bearer"}})");
  writer.key("responses").begin_object();
  for (const ErrorDoc& error : kErrors) write_error(writer, error.status, error.help, "Error");
  writer.end_object();
  writer.key("schemas").raw(response_schemas_json()).end_object();
}

}  // namespace

void show_openapi(const CallPtr& call) {
  call->respond_json(object_json([&](JsonWriter& writer) {
    writer.member("openapi", "3.1.0").key("info").begin_object();
    writer.member("title", "Paceline").member("version", kVersion).end_object();
    writer.key("security").raw(R"([{"key":[]}])");
    write_routes(writer, call->context().terms);
    write_components(writer);
  }));
}

}  // namespace paceline
