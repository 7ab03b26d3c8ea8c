// Pages of other sites that may use this server from a browser (CORS, the Fetch standard 3.2):
// exactly those of the named origins.
#pragma once

#include <span>
#include <string>

#include "server/http.h"

namespace paceline {

// Throws Error invalid naming --allowed-origin for what is no origin, "https://host:port".
void check_allowed_origins(std::span<const std::string> origins);

// Whether it is a browser's question if a page of an allowed origin may send a request.
bool is_preflight(const HttpRequest& head, std::span<const std::string> allowed);

// What tells the browser that the page may read the answer, if it may.
void add_origin_headers(const HttpRequest& head, std::span<const std::string> allowed,
                        HttpResponse& response);

// The answer to a preflight, without the headers above.
HttpResponse preflight_response();

}  // namespace paceline
