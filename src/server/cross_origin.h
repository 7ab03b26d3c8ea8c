// Pages of other sites that may use this server from a browser (CORS, the Fetch standard 3.2):
// exactly those of the named origins.
#pragma once

#include <span>
#include <string>

#include "http/http.h"

namespace paceline {

// Throws Error invalid naming --allowed-origin unless each is an origin, "https://host:port".
void check_allowed_origins(std::span<const std::string> origins);

// Whether it is a browser's preflight for a page of an allowed origin.
bool is_preflight(const HttpRequest& head, std::span<const std::string> allowed);

// Adds the headers that let a page of an allowed origin read the response.
void add_origin_headers(const HttpRequest& head, std::span<const std::string> allowed,
                        HttpResponse& response);

// The response to a preflight, without the headers above.
HttpResponse preflight_response();

}  // namespace paceline
