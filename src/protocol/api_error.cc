#include "protocol/api_error.h"

#include <cctype>

#include "base/json_writer.h"
#include "protocol/field_list.h"

namespace paceline {
namespace {

struct Mapping {
  ErrorCode code;
  int status;
  std::string_view type;
  std::string_view api_code;
};

// openai-python retries after 408, 409, 429 and everything from 500 on, so an invalid request is
// never answered with one of these.
constexpr Mapping kMappings[] = {
    {ErrorCode::invalid, 400, "invalid_request_error", "invalid_value"},
    {ErrorCode::not_found, 404, "invalid_request_error", "not_found"},
    {ErrorCode::unsupported, 501, "not_supported_error", "feature_disabled"},
    {ErrorCode::exhausted, 503, "server_error", "resource_exhausted"},
    {ErrorCode::corrupt, 500, "server_error", "internal_error"},
    {ErrorCode::numerical, 500, "server_error", "numerical_error"},
    {ErrorCode::cancelled, 499, "server_error", "cancelled"},
    {ErrorCode::internal, 500, "server_error", "internal_error"},
};

// Part of the engine's messages about prompts that don't fit: clients look for a code of their own.
constexpr std::string_view kContextHint = "(--max-model-len)";

bool is_word_byte(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_';
}

size_t skip_word(std::string_view text, size_t at) {
  while (at < text.size() && is_word_byte(text[at])) ++at;
  return at;
}

// "prompt[1][3]: the token id ..." -> "prompt[1][3]"
std::optional<std::string> leading_path(std::string_view message) {
  size_t at = skip_word(message, 0);
  if (!is_request_field(message.substr(0, at))) return std::nullopt;
  while (at < message.size() && (message[at] == '[' || message[at] == '.')) {
    if (message[at] == '.') {
      at = skip_word(message, at + 1);
    } else {
      const size_t close = message.find(']', at);
      if (close == std::string_view::npos) return std::nullopt;
      at = close + 1;
    }
  }
  if (message.substr(at, 2) != ": ") return std::nullopt;
  return std::string(message.substr(0, at));
}

}  // namespace

ApiError api_error(ErrorCode code, const std::string& message) {
  // An adapter that was removed after the request's model had been looked up.
  if (code == ErrorCode::not_found && message.starts_with("lora: ")) {
    return {.status = 404,
            .message = message,
            .type = "invalid_request_error",
            .param = "model",
            .code = "model_not_found"};
  }
  const Mapping* mapping = kMappings;
  while (mapping->code != code) ++mapping;
  ApiError error{.status = mapping->status,
                 .message = message,
                 .type = std::string(mapping->type),
                 .param = leading_path(message),
                 .code = std::string(mapping->api_code)};
  if (code == ErrorCode::invalid && message.find(kContextHint) != std::string::npos) {
    error.code = "context_length_exceeded";
  }
  return error;
}

ApiError api_error(const Error& error) {
  const auto* of_request = dynamic_cast<const RequestError*>(&error);
  if (of_request == nullptr) return api_error(error.code(), error.what());
  return {.status = of_request->api_code() == "model_not_found" ? 404 : 400,
          .message = error.what(),
          .type = "invalid_request_error",
          .param = of_request->param().empty() ? std::nullopt : std::optional(of_request->param()),
          .code = of_request->api_code()};
}

std::string error_json(const ApiError& error) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().key("error").begin_object();
  writer.member("message", error.message).member("type", error.type).key("param");
  error.param ? writer.string(*error.param) : writer.null();
  writer.key("code");
  error.code ? writer.string(*error.code) : writer.null();
  writer.end_object().end_object();
  return json;
}

}  // namespace paceline
