#include "http/response_head.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace paceline {
namespace {

struct StatusReason {
  int status;
  std::string_view reason;
};

constexpr auto kReasons = std::to_array<StatusReason>({
    {200, "OK"},
    {202, "Accepted"},
    {204, "No Content"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {529, "Overloaded"},
});

std::string_view reason_of(int status) {
  const auto found = std::find_if(kReasons.begin(), kReasons.end(),
                                  [status](const auto& row) { return row.status == status; });
  return found == kReasons.end() ? "" : found->reason;
}

void append_header(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ");
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    out += (byte < 0x20 && c != '\t') || byte == 0x7f ? ' ' : c;
  }
  out += "\r\n";
}

}  // namespace

std::string http_response_head(const HttpResponse& response, const HttpResponseFraming& form,
                               std::string_view date) {
  std::string head;
  head.reserve(256);
  fmt::format_to(std::back_inserter(head), "HTTP/1.1 {} {}\r\n", response.status,
                 reason_of(response.status));
  append_header(head, "Date", date);
  if (http_status_has_body(response.status)) {
    if (!response.content_type.empty()) append_header(head, "Content-Type", response.content_type);
    if (form.body_end == HttpBodyEnd::length) {
      append_header(head, "Content-Length", std::to_string(response.body.size()));
    } else if (form.body_end == HttpBodyEnd::chunked) {
      append_header(head, "Transfer-Encoding", "chunked");
    }
  }
  for (const HttpHeader& header : response.headers) append_header(head, header.name, header.value);
  if (!form.keep_alive) {
    append_header(head, "Connection", "close");
  } else if (form.version_minor == 0) {
    append_header(head, "Connection", "keep-alive");
  }
  return head += "\r\n";
}

bool http_status_has_body(int status) { return status != 204 && status != 304; }

std::string http_date(std::time_t time) {
  return fmt::format("{:%a, %d %b %Y %H:%M:%S GMT}", fmt::gmtime(time));
}

std::string http_chunk_head(size_t num_bytes) { return fmt::format("{:x}\r\n", num_bytes); }

}  // namespace paceline
