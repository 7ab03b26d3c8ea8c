#include "engine/context_error.h"

#include <fmt/format.h>

namespace paceline {
namespace {

std::string count_words(const ContextExcess& excess, int64_t more) {
  return excess.prompt_tokens ? std::to_string(*excess.prompt_tokens + more)
                              : fmt::format("more than {}", excess.capacity + more);
}

std::string context_message(const ContextExcess& excess) {
  const std::string requested = count_words(excess, excess.output_tokens);
  const std::string in_prompt = count_words(excess, 0);
  // LangChain looks for the code in the message.
  const std::string where =
      fmt::format("(context_length_exceeded; field: {}; limit: {})", excess.field, excess.limit);
  if (excess.field == "messages") {
    return fmt::format(
        "This model's maximum context length is {} tokens. However, you requested {} tokens ({} in "
        "the messages, {} in the completion). Please reduce the length of the messages or "
        "completion. {}",
        excess.capacity, requested, in_prompt, excess.output_tokens, where);
  }
  return fmt::format(
      "This model's maximum context length is {} tokens, however you requested {} tokens ({} in "
      "your prompt; {} for the completion). Please reduce your prompt; or completion length. {}",
      excess.capacity, requested, in_prompt, excess.output_tokens, where);
}

}  // namespace

RequestError context_error(ErrorCode code, const ContextExcess& excess) {
  return {excess.field, ErrorReason::context_length_exceeded, context_message(excess), code};
}

}  // namespace paceline
