// Error: thrown by every operation that fails because of its input, files or the system.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace paceline {

enum class ErrorCode {
  invalid,      // a request or an argument that can't be honoured as written
  not_found,    // a file, a model, a tensor that isn't there
  unsupported,  // well formed, but nothing here implements it
  exhausted,    // a limit or a resource ran out
  corrupt,      // a file whose content contradicts itself
  numerical,    // NaN, or nothing left to draw from
  cancelled,    // the caller asked for it
  internal,     // a bug of Paceline
};

// The name as it appears in JSON and in messages, e.g. "not_found".
std::string_view error_code_name(ErrorCode code);

// A message says where, what was found, what was expected, and what would fix it.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}

  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace paceline
