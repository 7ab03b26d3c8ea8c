// The error of a request that has no room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/request_error.h"

namespace paceline {

// What a request asks for, and what there is.
struct ContextExcess {
  std::string field;                     // the prompt's name
  int64_t capacity = 0;                  // tokens
  std::optional<int64_t> prompt_tokens;  // nothing: more than the capacity, by its bytes
  int64_t output_tokens = 0;
  std::string_view
      limit;  // the option that sets the capacity, and what it is of if not the context
};

// More tokens than the context, the cache or a step holds. The messages begin as those of OpenAI's
// API do, because clients find out by them that a conversation must be shortened.
RequestError context_error(ErrorCode code, const ContextExcess& excess);

}  // namespace paceline
