// Errors in the format of the OpenAI API: an HTTP status and the error object.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "paceline/error.h"

namespace paceline {

// A malformed or unsupported request. The message names the path of the field at fault.
class RequestError : public Error {
 public:
  RequestError(std::string param, std::string_view api_code, const std::string& message)
      : Error(ErrorCode::invalid, message), param_(std::move(param)), api_code_(api_code) {}

  const std::string& param() const { return param_; }        // e.g. "messages[1].content"
  const std::string& api_code() const { return api_code_; }  // e.g. "unsupported_parameter"

 private:
  std::string param_;
  std::string api_code_;
};

// The members of the error object, and its status.
struct ApiError {
  int status = 500;
  std::string message;
  std::string type;
  std::optional<std::string> param;
  std::optional<std::string> code;
};

ApiError api_error(const Error& error);
// For an error that came through a queue. `param` is the path at the message's beginning, if it is
// a field of some request.
ApiError api_error(ErrorCode code, const std::string& message);

// {"error": {"message", "type", "param", "code"}}
std::string error_json(const ApiError& error);

}  // namespace paceline
