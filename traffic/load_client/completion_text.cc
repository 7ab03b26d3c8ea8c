#include "traffic/load_client/completion_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

namespace paceline::traffic {
namespace {

std::optional<std::string_view> find_value(std::string_view json, std::string_view key) {
  const size_t at = json.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return json.substr(at + key.size());
}

}  // namespace

std::string completion_request(const CompletionRequestText& request) {
  const std::string body = fmt::format(
      "{{\"model\":\"paced\",\"prompt\":[{}],\"max_tokens\":{},\"temperature\":0,"
      "\"ignore_eos\":true,\"return_token_ids\":true{}}}",
      fmt::join(request.prompt, ","), request.max_tokens,
      request.is_streamed ? ",\"stream\":true,\"stream_options\":{\"include_usage\":true}" : "");
  return fmt::format(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: {}\r\n\r\n{}",
      body.size(), body);
}

std::optional<std::string_view> find_string(std::string_view json, std::string_view key) {
  const auto value = find_value(json, key);
  if (!value || !value->starts_with('"')) return std::nullopt;
  return value->substr(1, value->find('"', 1) - 1);
}

std::optional<int64_t> find_integer(std::string_view json, std::string_view key) {
  const auto value = find_value(json, key);
  int64_t number = 0;
  if (!value) return std::nullopt;
  const auto read = std::from_chars(value->data(), value->data() + value->size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

}  // namespace paceline::traffic
