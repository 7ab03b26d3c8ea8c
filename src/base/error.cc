#include "base/error.h"

#include <cstdio>
#include <cstdlib>

namespace paceline {

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid:
      return "invalid";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::exhausted:
      return "exhausted";
    case ErrorCode::corrupt:
      return "corrupt";
    case ErrorCode::numerical:
      return "numerical_error";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::internal:
      return "internal";
  }
  return "internal";
}

void check_failed(const char* condition, const char* file, int line, std::string_view message) {
  std::fprintf(stderr, "paceline: %s:%d: check failed: %s: %.*s\n", file, line, condition,
               static_cast<int>(message.size()), message.data());
  std::abort();
}

}  // namespace paceline
