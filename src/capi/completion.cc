#include "capi/completion.h"

#include <string_view>

#include "capi/call_status.h"

namespace paceline::capi {
namespace {

paceline_finish finish_of(std::string_view reason) {
  if (reason == "stop") return PACELINE_FINISH_STOP;
  if (reason == "length") return PACELINE_FINISH_LENGTH;
  if (reason == "cancelled") return PACELINE_FINISH_CANCELLED;
  return PACELINE_FINISH_NONE;
}

paceline_usage usage_of(const Usage& usage) {
  return {.prompt_tokens = usage.prompt_tokens,
          .completion_tokens = usage.completion_tokens,
          .cached_tokens = usage.cached_tokens,
          .drafted_tokens = usage.drafted_tokens,
          .accepted_tokens = usage.accepted_tokens,
          .reasoning_tokens = usage.reasoning_tokens};
}

const paceline_tool_call* tool_calls_of(const std::vector<ToolCall>& calls, ResultStore& store) {
  std::vector<paceline_tool_call> found;
  for (const ToolCall& call : calls) {
    found.push_back({.id = store.keep(call.id),
                     .name = store.keep(call.name),
                     .arguments = store.keep(call.arguments)});
  }
  return store.keep(std::move(found));
}

void take_turn(const TurnParts& turn, paceline_completion& to, ResultStore& store) {
  to.reasoning = store.keep(turn.reasoning);
  to.content = store.keep(turn.content);
  to.tool_calls = tool_calls_of(turn.tool_calls, store);
  to.num_tool_calls = turn.tool_calls.size();
}

void take_stop_reason(const Completion& from, paceline_completion& to, ResultStore& store) {
  to.stop_token = -1;
  if (!from.stop_reason) return;
  if (const auto* token = std::get_if<int32_t>(&*from.stop_reason)) {
    to.stop_token = *token;
  } else {
    to.stop_string = store.keep(std::get<std::string>(*from.stop_reason));
  }
}

}  // namespace

const paceline_logprob* c_logprobs(const std::vector<Logprob>& logprobs, ResultStore& store) {
  std::vector<paceline_logprob> found;
  found.reserve(logprobs.size());
  for (const Logprob& one : logprobs) {
    std::vector<paceline_top_logprob> top;
    for (const TopLogprob& other : one.top) {
      top.push_back({.id = other.id, .logprob = other.logprob, .token = store.keep(other.token)});
    }
    found.push_back({.id = one.id,
                     .has_logprob = one.logprob ? 1 : 0,
                     .logprob = one.logprob.value_or(0),
                     .token = store.keep(one.token),
                     .top = store.keep(std::move(top)),
                     .num_top = one.top.size()});
  }
  return store.keep(std::move(found));
}

paceline_completion c_completion(const Completion& completion, ResultStore& store) {
  paceline_completion to = {};
  to.finish = finish_of(completion.finish_reason);
  if (completion.text) {
    to.text = store.keep(*completion.text);
    to.text_size = completion.text->size();
  }
  to.token_ids = store.keep(completion.token_ids);
  to.num_token_ids = completion.token_ids.size();
  to.logprobs = c_logprobs(completion.logprobs, store);
  to.num_logprobs = completion.logprobs.size();
  to.prompt_logprobs = c_logprobs(completion.prompt_logprobs, store);
  to.num_prompt_logprobs = completion.prompt_logprobs.size();
  to.usage = usage_of(completion.usage);
  to.queue_seconds = completion.timings.queue_seconds;
  to.time_to_first_token_seconds = completion.timings.time_to_first_token_seconds;
  to.output_seconds = completion.timings.output_seconds;
  to.seed = completion.seed;
  take_stop_reason(completion, to, store);
  if (completion.turn) take_turn(*completion.turn, to, store);
  return to;
}

}  // namespace paceline::capi
