#include "cli/completion_json.h"

#include "base/json_writer.h"
#include "protocol/assistant_message.h"

namespace paceline {
namespace {

void write_logprob(JsonWriter& writer, const Logprob& entry) {
  writer.begin_object().member("id", entry.id).member("token", entry.token).key("logprob");
  entry.logprob ? writer.number(*entry.logprob) : writer.null();
  writer.key("top").begin_array();
  for (const TopLogprob& top : entry.top) {
    writer.begin_object().member("id", top.id).member("token", top.token);
    writer.member("logprob", top.logprob).end_object();
  }
  writer.end_array().end_object();
}

void write_stop_reason(JsonWriter& writer, const Completion& completion) {
  writer.key("stop_reason");
  if (!completion.stop_reason) {
    writer.null();
  } else if (const auto* id = std::get_if<int32_t>(&*completion.stop_reason)) {
    writer.integer(*id);
  } else {
    writer.string(std::get<std::string>(*completion.stop_reason));
  }
}

void write_completion(JsonWriter& writer, const Completion& completion, bool with_logprobs) {
  writer.key("text");
  completion.text ? writer.string(*completion.text) : writer.null();
  writer.key("token_ids").begin_array();
  for (int32_t id : completion.token_ids) writer.integer(id);
  writer.end_array().member("finish_reason", completion.finish_reason);
  write_stop_reason(writer, completion);
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
  writer.key("warnings").begin_array();
  for (const std::string& warning : completion.warnings) writer.string(warning);
  writer.end_array();
}

}  // namespace

std::string completion_json(const Completion& completion, bool with_logprobs) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object();
  write_completion(writer, completion, with_logprobs);
  writer.end_object();
  return json;
}

std::string chat_completion_json(const Completion& completion, bool with_logprobs) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().key("message").begin_object();
  write_assistant_message(writer, completion.text, completion.turn);
  writer.end_object();
  write_completion(writer, completion, with_logprobs);
  writer.end_object();
  return json;
}

}  // namespace paceline
