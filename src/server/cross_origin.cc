#include "server/cross_origin.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"

namespace paceline {
namespace {

// "https://host" or "https://host:port", as browsers write it: in lower case, nothing behind it.
bool is_origin(std::string_view text) {
  const size_t scheme = text.find("://");
  if (scheme == 0 || scheme == std::string_view::npos) return false;
  const std::string_view host = text.substr(scheme + 3);
  return !host.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > 0x20 && c < 0x7f && !(c >= 'A' && c <= 'Z');
  }) && host.find_first_of("/?#@*") == std::string_view::npos;
}

const std::string* allowed_origin(const HttpRequest& head, std::span<const std::string> allowed) {
  const std::string* origin = head.header("origin");
  if (origin == nullptr) return nullptr;
  return std::find(allowed.begin(), allowed.end(), *origin) == allowed.end() ? nullptr : origin;
}

}  // namespace

void check_allowed_origins(std::span<const std::string> origins) {
  for (const std::string& origin : origins) {
    if (is_origin(origin)) continue;
    throw error_of(ErrorCode::invalid,
                   "--allowed-origin: found \"{}\", expected an origin as browsers send "
                   "it, e.g. https://chat.example or http://localhost:3000",
                   origin);
  }
}

bool is_preflight(const HttpRequest& head, std::span<const std::string> allowed) {
  return head.method == "OPTIONS" && head.header("access-control-request-method") != nullptr &&
         allowed_origin(head, allowed) != nullptr;
}

void add_origin_headers(const HttpRequest& head, std::span<const std::string> allowed,
                        HttpResponse& response) {
  if (allowed.empty()) return;
  response.headers.push_back({"Vary", "Origin"});  // caches may not give it to others
  const std::string* origin = allowed_origin(head, allowed);
  if (origin == nullptr) return;
  response.headers.push_back({"Access-Control-Allow-Origin", *origin});
  response.headers.push_back(
      {"Access-Control-Expose-Headers", "x-request-id, openai-processing-ms, Retry-After"});
}

HttpResponse preflight_response() {
  return {.status = 204,
          .content_type = "",
          .body = "",
          .headers = {{"Access-Control-Allow-Methods", "GET, POST, DELETE"},
                      // "*" leaves out Authorization; OpenAI's clients send x-stainless-... too.
                      {"Access-Control-Allow-Headers", "Authorization, *"},
                      {"Access-Control-Max-Age", "600"}}};
}

}  // namespace paceline
