// The table of the server's routes. Everything about a route stands in its row: admission, the
// OpenAPI description and docs/api.md are derived from it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "protocol/dialect.h"
#include "server/api_call.h"

namespace paceline {

enum class RouteAccess : uint8_t {
  open,  // to everybody: health, and the page's own files
  key,   // needs the API key when one is set
};

struct Route {
  std::string_view method = {};
  std::string_view path = {};     // a "*" stands for any text that is not empty
  std::string_view summary = {};  // one sentence, for OpenAPI
  RouteAccess access = RouteAccess::key;
  // How the route is asked and answered; none: its handler says so, errors are as in OpenAI's API.
  const Dialect* dialect = nullptr;
  // The fields of the request's JSON body, where no dialect has them. A route with a body needs a
  // permit (InFlightLimit).
  FieldList (*body)() = nullptr;
  // Schemas of the JSON response, and of each event of a streamed one (response_schemas_json()).
  std::string_view response = {};
  std::string_view chunk = {};
  std::string_view media_type = "application/json";  // of the response
  void (*handle)(const CallPtr& call) = nullptr;

  bool names_one() const { return path.find('*') != std::string_view::npos; }
  bool has_body() const {
    return body != nullptr || (dialect != nullptr && dialect->fields != nullptr);
  }
  FieldList fields() const { return body != nullptr ? body() : dialect->fields(); }
};

std::span<const Route> route_table();

// The API of a path, whatever its method and whether or not a route has it; null: none's, whose
// errors are as in OpenAI's.
const Dialect* dialect_at(std::string_view path);
ErrorAnswer answer_error(const Dialect* dialect, const ApiError& error,
                         std::string_view request_id);

// The route of a request, or the error that answers it: 404 or 405. `allow` is set with 405.
std::variant<const Route*, ApiError> find_route(std::string_view method, std::string_view path,
                                                std::string& allow);

}  // namespace paceline
