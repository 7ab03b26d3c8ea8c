#include "engine/request.h"

#include <fmt/format.h>

#include "base/error.h"

namespace paceline {

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::cancelled:
      return "cancelled";
  }
  return "stop";
}

void check_token_ids(std::span<const TokenId> ids, int64_t vocab_size, std::string_view field) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size) {
      throw Error(ErrorCode::invalid,
                  fmt::format("{}[{}]: the token id {} is outside the vocabulary (0..{})", field, i,
                              ids[i], vocab_size - 1));
    }
  }
}

void throw_if_cancelled(const std::stop_token& cancelled) {
  if (cancelled.stop_requested()) throw Error(ErrorCode::cancelled, "cancelled by the caller");
}

}  // namespace paceline
