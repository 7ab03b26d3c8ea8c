#include "capi/call_status.h"

#include <fmt/format.h>

namespace paceline::capi {
namespace {

std::string& last_error() {
  static thread_local std::string message;
  return message;
}

constexpr const char* kNames[] = {"ok",      "invalid",   "not_found", "unsupported", "exhausted",
                                  "corrupt", "numerical", "cancelled", "internal"};

}  // namespace

paceline_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid:
      return PACELINE_INVALID;
    case ErrorCode::not_found:
      return PACELINE_NOT_FOUND;
    case ErrorCode::unsupported:
      return PACELINE_UNSUPPORTED;
    case ErrorCode::exhausted:
      return PACELINE_EXHAUSTED;
    case ErrorCode::corrupt:
      return PACELINE_CORRUPT;
    case ErrorCode::numerical:
      return PACELINE_NUMERICAL;
    case ErrorCode::cancelled:
      return PACELINE_CANCELLED;
    case ErrorCode::internal:
      break;
  }
  return PACELINE_INTERNAL;
}

paceline_status fail(paceline_status status, std::string message) noexcept {
  last_error() = std::move(message);
  return status;
}

void check_given(const void* argument, const char* name) {
  if (argument == nullptr) {
    throw Error(ErrorCode::invalid, fmt::format("{}: found NULL, expected a pointer", name));
  }
}

}  // namespace paceline::capi

const char* paceline_status_name(paceline_status status) {
  const auto index = static_cast<size_t>(status);
  return index < std::size(paceline::capi::kNames) ? paceline::capi::kNames[index] : "unknown";
}

const char* paceline_last_error() { return paceline::capi::last_error().c_str(); }
