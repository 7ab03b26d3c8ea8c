#include "protocol/api_error.h"

#include <cctype>

#include "base/json_writer.h"
#include "engine/request_error.h"
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

ApiError request_fault(const Error& error, int status, const std::string& param,
                       const std::string& code) {
  return {.status = status,
          .message = error.what(),
          .type = "invalid_request_error",
          .param = param.empty() ? std::nullopt : std::optional(param),
          .code = code};
}

}  // namespace

ApiError api_error(ErrorCode code, const std::string& message) {
  const Mapping* mapping = kMappings;
  while (mapping->code != code) ++mapping;
  return {.status = mapping->status,
          .message = message,
          .type = std::string(mapping->type),
          .param = leading_path(message),
          .code = std::string(mapping->api_code)};
}

ApiError api_error(const Error& error) {
  if (const auto* context = dynamic_cast<const ContextError*>(&error)) {
    return request_fault(error, 400, context->field(), "context_length_exceeded");
  }
  if (dynamic_cast<const AdapterError*>(&error) != nullptr) {
    return request_fault(error, 404, "model", "model_not_found");
  }
  if (const auto* of_request = dynamic_cast<const RequestError*>(&error)) {
    const int status = of_request->api_code() == "model_not_found" ? 404 : 400;
    return request_fault(error, status, of_request->param(), of_request->api_code());
  }
  return api_error(error.code(), error.what());
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
