#include "cli/completion_json.h"

#include "base/json_writer.h"
#include "protocol/response.h"

namespace paceline {
namespace {

void write_logprob(JsonWriter& writer, const Logprob& entry) {
  writer.begin_object()
      .member("id", entry.id)
      .member("token", entry.token)
      .member("logprob", entry.logprob);
  writer.key("top").begin_array();
  for (const TopLogprob& top : entry.top) {
    writer.begin_object().member("id", top.id).member("token", top.token);
    writer.member("logprob", top.logprob).end_object();
  }
  writer.end_array().end_object();
}

void write_completion(JsonWriter& writer, const Completion& completion, bool with_logprobs) {
  writer.member("text", completion.text);
  writer.member("token_ids", completion.token_ids)
      .member("finish_reason", completion.finish_reason);
  writer.member("stop_reason", completion.stop_reason);
  writer.key("logprobs");
  if (with_logprobs) {
    writer.begin_array();
    for (const Logprob& entry : completion.logprobs) write_logprob(writer, entry);
    writer.end_array();
  } else {
    writer.null();
  }
  const Usage& usage = completion.usage;
  writer.key("usage").begin_object();
  writer.member("prompt_tokens", usage.prompt_tokens);
  writer.member("completion_tokens", usage.completion_tokens);
  writer.member("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  if (usage.drafted_tokens > 0) {
    writer.member("drafted_tokens", usage.drafted_tokens);
    writer.member("accepted_tokens", usage.accepted_tokens);
  }
  if (usage.reasoning_tokens > 0) writer.member("reasoning_tokens", usage.reasoning_tokens);
  writer.end_object();
  writer.member("seed", completion.seed);
  if (completion.warnings.empty()) return;
  writer.member("warnings", completion.warnings);
}

}  // namespace

std::string completion_json(const Completion& completion, bool with_logprobs) {
  return object_json(
      [&](JsonWriter& writer) { write_completion(writer, completion, with_logprobs); });
}

std::string chat_completion_json(const Completion& completion, bool with_logprobs) {
  return object_json([&](JsonWriter& writer) {
    writer.key("message").begin_object();
    write_assistant_message(writer, completion.text, completion.turn);
    writer.end_object();
    write_completion(writer, completion, with_logprobs);
  });
}

}  // namespace paceline
