// The routes of the server: method, path, who may use them, and what answers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "protocol/api_error.h"
#include "server/api_call.h"

namespace paceline {

enum class RouteAccess : uint8_t {
  open,  // to everybody: health, and the page's own files
  key,   // needs the API key when one is set
};

struct Route {
  std::string_view method;
  std::string_view path;  // with "*" at its end: any that begins so
  RouteAccess access = RouteAccess::key;
  bool computes = false;  // has a body and takes a ticket
  std::string_view help;  // one sentence
  void (*handle)(const std::shared_ptr<ApiCall>& call);
};

std::span<const Route> route_table();

// The route of a request or the error that answers it: 404, 405, 501. `allow` is set with 405.
std::variant<const Route*, ApiError> find_route(std::string_view method, std::string_view path,
                                                std::string& allow);

}  // namespace paceline
