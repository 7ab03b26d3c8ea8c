#include "engine/event.h"

namespace paceline {

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::cancelled:
      return "cancelled";
    case FinishReason::error:
      return "error";
  }
  return "error";
}

std::optional<FinishReason> find_finish_reason(std::string_view name) {
  for (const FinishReason reason :
       {FinishReason::stop, FinishReason::length, FinishReason::cancelled, FinishReason::error}) {
    if (finish_reason_name(reason) == name) return reason;
  }
  return std::nullopt;
}

}  // namespace paceline
