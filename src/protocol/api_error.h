// Errors in the format of the OpenAI API: an HTTP status and the error object.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/request_error.h"
#include "paceline/results.h"

namespace paceline {

// An error as every API tells it: what a client sees beside the message comes from the reason.
struct ApiError {
  ErrorReason reason = ErrorReason::internal_error;
  std::string message = {};
  std::optional<std::string> field = {};  // the path of the field at fault
};

// What the OpenAI API says for a reason.
struct ErrorKind {
  ErrorReason reason;
  int status;
  std::string_view type;
  std::string_view code;
};

const ErrorKind& openai_kind(ErrorReason reason);

ApiError api_error(const Error& error);
// For an error that came through a queue.
ApiError api_error(const ErrorInfo& error);

// {"error": {"message", "type", "param", "code"}}
std::string error_json(const ApiError& error);

}  // namespace paceline
