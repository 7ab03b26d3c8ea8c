#include "text/chat_prompt.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "base/request_error.h"
#include "chat/message_json.h"
#include "engine/engine.h"
#include "text/chat_turns.h"
#include "text/make_request.h"
#include "text/text_model.h"
#include "tools/cut_arguments.h"
#include "tools/render_history.h"
#include "tools/told_calls.h"

namespace paceline {
namespace {

const ChatTemplate& template_of(const ChatRenderer& model) {
  if (model.chat_template != nullptr) return *model.chat_template;
  throw RequestError("", ErrorReason::feature_disabled, model.chat_problem, ErrorCode::not_found);
}

Json with_arguments_as_text(const Json& call) {
  const Json* const function = call.find_value("function");
  const Json* const arguments = function == nullptr ? nullptr : function->find_value("arguments");
  if (arguments == nullptr || arguments->is_string()) return call;
  return with_member(call, "function",
                     with_member(*function, "arguments", Json(to_json(*arguments))));
}

// A message with calls and no content: some templates write calls only where it is null or absent.
Json with_no_content(const Json& message, CallMessageShape::Content form) {
  using enum CallMessageShape::Content;
  const Json* const content = message.find_value("content");
  const bool is_empty = content != nullptr && content->is_string() && content->string()->empty();
  if (content != nullptr && (!is_empty || form == empty)) return message;
  if (form == absent) return without_member(message, "content");
  return with_member(message, "content", form == empty ? Json(std::string()) : Json());
}

// Calls of earlier turns as the template asks for them.
void shape_calls(const CallMessageShape& shape, ChatInput& input) {
  for (ChatMessage& message : input.messages) {
    if (message.json.empty()) continue;
    const Json json = parse_json(message.json, "messages");
    const Json* const calls = json.find_value("tool_calls");
    if (calls == nullptr || !calls->is_array() || calls->array()->empty()) continue;
    Json::Array written;
    for (const Json& call : *calls->array()) {
      written.push_back(shape.arguments_are_text ? with_arguments_as_text(call) : call);
    }
    message.json = to_json(with_no_content(
        with_member(json, "tool_calls", Json(std::move(written))), shape.no_content));
  }
}

// A chat's answer may be as long as the context allows.
int64_t remaining_context(const TextModel& model, size_t prompt_tokens) {
  const int64_t context =
      std::min(model.engine.limits().max_model_len, std::max<int64_t>(model.max_position, 1));
  return std::max<int64_t>(context - static_cast<int64_t>(prompt_tokens), 1);
}

size_t num_bytes(const std::vector<ChatMessage>& messages) {
  size_t sum = 0;
  for (const ChatMessage& message : messages) sum += message.content.size() + message.json.size();
  return sum;
}

// What the template writes, whatever was typed.
std::string render_text(const ChatRenderer& model, const ChatTemplate& chat_template,
                        const ChatInput& asked) {
  ChatInput input = asked;
  bool are_arguments_text = false;
  if (model.turns != nullptr && has_tools(input)) {
    const TurnFormat& format = *model.turns->format();
    if (format.tells_calls) {
      input = with_told_tools(input, format.writes_system);
    } else if (format.calls) {
      shape_calls(format.calls->message, input);
    }
    are_arguments_text = format.calls && format.calls->message.arguments_are_text;
  }
  return render_with_cut_arguments(input, are_arguments_text, [&](const ChatInput& form) {
    return render_history(chat_template, form);
  });
}

}  // namespace

ChatRenderer chat_renderer(const TextModel& model) {
  return {.chat_template = model.chat_template,
          .chat_problem = model.chat_problem,
          .tokenizer = model.tokenizer,
          .turns = model.turns,
          .typed_specials = model.typed_specials};
}

RenderedChat render_chat(const ChatRenderer& model, const ChatInput& asked) {
  const ChatTemplate& chat_template = template_of(model);
  ChatInput input = asked;
  if (input.special_tokens.empty() && model.tokenizer != nullptr) {
    input.special_tokens = model.tokenizer->special_tokens();
  }
  const auto render = [&](const ChatInput& one) { return render_text(model, chat_template, one); };
  if (model.tokenizer == nullptr || model.typed_specials == TypedSpecials::tokens) {
    return {.text = render(input), .typed = {}};
  }
  return render_typed(*model.tokenizer, input, render);
}

RenderedChat render_chat(const TextModel& model, const ChatInput& input) {
  return render_chat(chat_renderer(model), input);
}

RenderedChat render_within_context(const TextModel& model, const ChatInput& input) {
  try {
    return render_chat(model, input);
  } catch (const Error& error) {
    // The template writes too much, or takes too long: a shorter conversation is what helps.
    if (error.code() == ErrorCode::exhausted) {
      check_text_length(model, num_bytes(input.messages), "messages");
    }
    throw;
  }
}

std::vector<TokenId> encode_chat(const TextModel& model, const ChatInput& input,
                                 GenerateOptions& options) {
  return encode_chat_text(model, render_within_context(model, input), options);
}

std::vector<TokenId> encode_chat_text(const TextModel& model, const RenderedChat& prompt,
                                      GenerateOptions& options) {
  if (options.prompt_name.empty()) options.prompt_name = "messages";
  std::vector<TokenId> ids =
      encode_prompt(model, prompt.text, options.prompt_name, {.plain = prompt.typed});
  if (!options.max_tokens && !model.generation.defaults.max_tokens) {
    options.max_tokens =
        default_max_tokens(model, std::ssize(ids), remaining_context(model, ids.size()));
  }
  return ids;
}

// What the template writes when it is asked for an answer to a short conversation.
int64_t num_answer_tokens(const TextModel& model, const ChatInput& input,
                          const RenderedChat& prompt) {
  ChatInput brief{.messages = {{"user", "a"}}, .kwargs_json = input.kwargs_json};
  try {
    const std::string asked = render_chat(model, brief).text;
    brief.add_generation_prompt = false;
    const std::string without = render_chat(model, brief).text;
    if (!asked.starts_with(without)) return 0;
    const std::string beginning = asked.substr(without.size());
    if (beginning.empty() || !prompt.text.ends_with(beginning)) return 0;
    return std::ssize(model.tokenizer->encode(beginning));
  } catch (const Error&) {  // the template takes no such conversation
    return 0;
  }
}

}  // namespace paceline
