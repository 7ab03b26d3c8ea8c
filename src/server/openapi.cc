// GET /openapi.json: the routes, and the fields of their requests, from the tables that read them.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "base/version.h"
#include "protocol/chat_request.h"
#include "protocol/classification_request.h"
#include "protocol/completion_request.h"
#include "protocol/score_request.h"
#include "protocol/text_requests.h"
#include "server/route_table.h"
#include "server/routes.h"

namespace paceline {
namespace {

struct RequestSchema {
  std::string_view path;
  std::vector<FieldInfo> fields;
  std::string_view required;  // empty: none alone
};

std::vector<RequestSchema> request_schemas() {
  return {{"/v1/chat/completions", chat_request_fields(), "messages"},
          {"/v1/completions", completion_request_fields(), "prompt"},
          {"/generate", completion_request_fields(), "prompt"},
          {"/v1/classify", classification_request_fields(), "input"},
          {"/v1/score", score_request_fields(), "input"},
          {"/tokenize", tokenize_request_fields(), ""},
          {"/detokenize", detokenize_request_fields(), "tokens"},
          {"/apply-template", template_request_fields(), "messages"}};
}

void write_body(JsonWriter& writer, const RequestSchema& schema) {
  writer.key("requestBody").begin_object().member("required", true);
  writer.key("content").begin_object().key("application/json").begin_object();
  writer.key("schema").begin_object().member("type", "object");
  writer.member("additionalProperties", false);
  if (!schema.required.empty()) {
    writer.key("required").begin_array().string(schema.required).end_array();
  }
  writer.key("properties").begin_object();
  for (const FieldInfo& field : schema.fields) {
    if (field.use == FieldUse::refused) continue;
    writer.key(field.name).begin_object();
    if (!field.help.empty()) writer.member("description", field.help);
    writer.end_object();
  }
  writer.end_object().end_object().end_object().end_object().end_object();
}

void write_answers(JsonWriter& writer) {
  writer.key("responses").begin_object();
  writer.key("200").begin_object().member("description", "The answer.").end_object();
  writer.key("default").begin_object().member("description", "An error.");
  writer.key("content").begin_object().key("application/json").begin_object();
  writer.key("schema").begin_object().member("$ref", "#/components/schemas/Error");
  writer.end_object().end_object().end_object().end_object().end_object();
}

// "/v1/models/*" -> "/v1/models/{name}"
std::string openapi_path(std::string_view path) {
  std::string text(path);
  if (text.ends_with('*')) text.replace(text.size() - 1, 1, "{name}");
  return text;
}

void write_route(JsonWriter& writer, const Route& route,
                 const std::vector<RequestSchema>& schemas) {
  writer.key(openapi_path(route.path)).begin_object();
  writer.key(route.method == "GET" ? "get" : "post").begin_object();
  writer.member("summary", route.help);
  if (route.access == RouteAccess::open) writer.key("security").begin_array().end_array();
  if (route.path.ends_with('*')) {
    writer.key("parameters").begin_array().begin_object().member("name", "name");
    writer.member("in", "path").member("required", true).key("schema").begin_object();
    writer.member("type", "string").end_object().end_object().end_array();
  }
  const auto schema = std::find_if(schemas.begin(), schemas.end(),
                                   [&](const auto& one) { return one.path == route.path; });
  if (schema != schemas.end()) write_body(writer, *schema);
  write_answers(writer);
  writer.end_object().end_object();
}

void write_components(JsonWriter& writer) {
  writer.key("components").begin_object();
  writer.key("securitySchemes").begin_object().key("key").begin_object();
  writer.member("type", "http").member("scheme", "bearer").end_object().end_object();
  writer.key("schemas").begin_object().key("Error").begin_object().member("type", "object");
  writer.key("required").begin_array().string("error").end_array();
  writer.key("properties").begin_object().key("error").begin_object().member("type", "object");
  writer.key("required").begin_array();
  for (const char* name : {"message", "type", "param", "code"}) writer.string(name);
  writer.end_array().key("properties").begin_object();
  for (const char* name : {"message", "type"}) {
    writer.key(name).begin_object().member("type", "string").end_object();
  }
  for (const char* name : {"param", "code"}) {
    writer.key(name).begin_object().key("type").begin_array();
    writer.string("string").string("null").end_array().end_object();
  }
  writer.end_object().end_object().end_object().end_object().end_object().end_object();
}

}  // namespace

void show_openapi(const CallPtr& call) {
  const std::vector<RequestSchema> schemas = request_schemas();
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().member("openapi", "3.1.0").key("info").begin_object();
  writer.member("title", "Paceline").member("version", kVersion).end_object();
  writer.key("security").begin_array().begin_object().key("key").begin_array().end_array();
  writer.end_object().end_array().key("paths").begin_object();
  for (const Route& route : route_table()) write_route(writer, route, schemas);
  writer.end_object();
  write_components(writer);
  writer.end_object();
  call->respond_json(std::move(json));
}

}  // namespace paceline
