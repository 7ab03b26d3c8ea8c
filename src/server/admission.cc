#include "server/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <utility>

#include "server/cross_origin.h"
#include "server/host_check.h"
#include "server/routes.h"
#include "server/server_errors.h"

namespace paceline {
namespace {

std::optional<ApiError> check_host(const ServerContext& context, const HttpRequest& head) {
  const HttpAddress& address = context.options.address;
  const bool is_local = address.unix_socket.empty() && is_loopback_name(address.host);
  const std::string* host = head.authority.empty() ? head.header("host") : &head.authority;
  if (!is_local || !context.keys.empty() || host == nullptr) return std::nullopt;
  if (is_allowed_host(*host, context.options.allowed_hosts)) return std::nullopt;
  return ApiError{
      ErrorReason::host_not_allowed,
      fmt::format("Host: found \"{}\", expected a name of the loopback; --allowed-host adds others",
                  *host)};
}

std::optional<ApiError> check_key(const ServerContext& context, const HttpRequest& head,
                                  const Route& route) {
  if (route.access == RouteAccess::open) return std::nullopt;
  if (context.keys.allows(head)) return std::nullopt;
  const bool has_key =
      head.header("authorization") != nullptr || head.header("x-api-key") != nullptr;
  return ApiError{
      ErrorReason::invalid_api_key,
      has_key ? "the API key is wrong" : "no API key; send it as \"Authorization: Bearer KEY\""};
}

// Whether a browser sends the request: for a POST it says where the page is from.
bool is_from_page(const HttpRequest& head) {
  constexpr std::string_view kMarks[] = {"origin", "sec-fetch-site", "referer"};
  return std::any_of(std::begin(kMarks), std::end(kMarks),
                     [&](std::string_view name) { return head.header(name) != nullptr; });
}

// A browser lets a page of another site send a form or plain text without a preflight, but no JSON.
// curl calls what it sends a form.
std::optional<ApiError> check_media_type(const HttpRequest& head) {
  if (const std::string* coding = head.header("content-encoding");
      coding != nullptr && *coding != "identity" && *coding != "zstd") {
    return ApiError{
        ErrorReason::unsupported_media_type,
        fmt::format("Content-Encoding: found \"{}\", expected identity or zstd", *coding)};
  }
  const std::string* type = head.header("content-type");
  std::string found = type == nullptr ? "" : type->substr(0, type->find(';'));
  std::transform(found.begin(), found.end(), found.begin(),
                 [](unsigned char byte) { return static_cast<char>(std::tolower(byte)); });
  while (found.ends_with(' ')) found.pop_back();
  if (found == "application/json") return std::nullopt;
  const bool is_of_curl = found.empty() || found == "application/x-www-form-urlencoded";
  if (is_of_curl && !is_from_page(head)) return std::nullopt;
  return ApiError{ErrorReason::unsupported_media_type,
                  fmt::format("Content-Type: found \"{}\", expected application/json",
                              type == nullptr ? "" : *type)};
}

std::optional<ApiError> check_head(const ServerContext& context, const HttpRequest& head,
                                   const Route& route) {
  if (auto error = check_host(context, head)) return error;
  if (auto error = check_key(context, head, route)) return error;
  if (!route.has_body()) return std::nullopt;
  if (auto error = check_media_type(head)) return error;
  if (context.refusing) return ended_by_server();
  if (!context.memory.is_full()) return std::nullopt;
  return memory_is_full();
}

// The length of the body; of a chunked or compressed one its limit.
int64_t body_bytes(const HttpRequest& head, const HttpLimits& limits) {
  const std::string* length =
      head.header("content-encoding") == nullptr ? head.header("content-length") : nullptr;
  auto num_bytes = static_cast<int64_t>(limits.max_body_bytes);
  if (length != nullptr) {
    std::from_chars(length->data(), length->data() + length->size(), num_bytes);
  }
  return num_bytes;
}

// For every path; browsers send preflights without the key.
constexpr Route kPreflight = {
    .method = "OPTIONS", .path = "*", .access = RouteAccess::open, .handle = handle_preflight};

HttpGate refuse(ServerContext& context, const HttpRequest& head, const ApiError& error,
                const std::string& allow = "") {
  const Dialect* const dialect = dialect_at(head.path);
  context.errors.count(error);
  const std::string id = request_id_of(head);
  HttpResponse response = error_response(context, dialect, error, id);
  add_request_id(dialect, id, response);
  add_origin_headers(head, context.options.allowed_origins, response);
  write_log(context, {.request_id = id,
                      .route = head.method + " " + head.path,
                      .peer = head.peer,
                      .status = response.status,
                      .error_code = std::string(openai_kind(error.reason).code)});
  if (!allow.empty()) response.headers.push_back({"Allow", allow});
  return {.refusal = std::move(response), .held = nullptr};
}

}  // namespace

HttpGate admit(ServerContext& context, const HttpRequest& head) {
  if (is_preflight(head, context.options.allowed_origins)) {
    if (const auto error = check_host(context, head)) return refuse(context, head, *error);
    return {.refusal = std::nullopt,
            .held = std::make_shared<AdmittedRequest>(AdmittedRequest{.route = &kPreflight})};
  }
  std::string allow;
  const auto found = find_route(head.method, head.path, allow);
  if (const auto* error = std::get_if<ApiError>(&found))
    return refuse(context, head, *error, allow);
  const Route* route = std::get<const Route*>(found);
  if (const auto error = check_head(context, head, *route)) {
    return refuse(context, head, *error);
  }
  auto admitted = std::make_shared<AdmittedRequest>(AdmittedRequest{.route = route});
  if (route->has_body()) {
    admitted->permit = context.in_flight.acquire();
    if (admitted->permit == nullptr) {
      return refuse(
          context, head,
          queue_full(fmt::format("the limit of requests in flight is reached ({}, --max-requests)",
                                 context.in_flight.num_in_flight())));
    }
    admitted->body_bytes = context.body_bytes.acquire(body_bytes(head, context.options.http));
    if (admitted->body_bytes == nullptr) {
      return refuse(context, head,
                    queue_full(fmt::format("{} bytes of request bodies are being read already",
                                           context.body_bytes.num_held())));
    }
  }
  return {.refusal = std::nullopt, .held = std::move(admitted)};
}

}  // namespace paceline
