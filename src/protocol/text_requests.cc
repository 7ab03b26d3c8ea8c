#include "protocol/text_requests.h"

#include "base/request_error.h"
#include "protocol/chat_messages.h"
#include "protocol/chat_tools.h"

namespace paceline {
namespace {

constexpr FieldDef<TokenizeRequest> kTokenizeFields[] = {
    field("model", kAnyText, store<&TokenizeRequest::model>, "The model's name."),
    field("prompt", kAnyText, store<&TokenizeRequest::text>,
          "The text (vLLM's name); one of prompt, content and messages must be there."),
    field("content", kAnyText, store<&TokenizeRequest::text>, "The text (llama.cpp's name).",
          {.alias_of = "prompt"}),
    field("add_special_tokens", kBoolean, store<&TokenizeRequest::add_special_tokens>,
          "Add the special tokens (BOS) that the tokenizer adds; true with prompt, else false."),
    field("add_special", kBoolean, store<&TokenizeRequest::add_special_tokens>,
          "The same (llama.cpp's name).", {.alias_of = "add_special_tokens"}),
    field("parse_special", kBoolean, store<&TokenizeRequest::parse_special>,
          "Special tokens written in the text are recognised.", kOn),
    field("return_token_strs", kBoolean, store<&TokenizeRequest::return_token_strs>,
          "Add the tokens' texts as token_strs.", kOff),
    field("with_pieces", kBoolean, store<&TokenizeRequest::with_pieces>,
          "Tokens become objects of id and piece.", kOff),
};

constexpr FieldDef<DetokenizeRequest> kDetokenizeFields[] = {
    field("model", kAnyText, store<&DetokenizeRequest::model>, "The model's name."),
    required("tokens", array_type(kTokenId, 0, kMaxListedTokens), store<&DetokenizeRequest::tokens>,
             "The token ids."),
};

constexpr FieldDef<ChatInput> kConversationFields[] = {
    field(
        "messages", kMessages,
        [](const FieldValue& v, ChatInput& t) {
          std::vector<std::string> warnings;
          t.messages = read_messages(v, warnings);
        },
        "The conversation."),
    field(
        "tools", kTools,
        [](const FieldValue& v, ChatInput& t) {
          TurnRequest turn;
          t.tools_json = read_tools(v, turn);
        },
        "Tools for the template."),
    field(
        "chat_template_kwargs", kAnyObject,
        [](const FieldValue& v, ChatInput& t) { t.kwargs_json = read_template_variables(v); },
        "Further variables of the template."),
    field("add_generation_prompt", kBoolean, store<&ChatInput::add_generation_prompt>,
          "End with the beginning of the answer.", kOn),
    field("continue_final_message", kBoolean, store<&ChatInput::continue_final_message>,
          "End with the last message, open; add_generation_prompt must be false.", kOff),
};

constexpr FieldDef<TemplateRequest> kTemplateFields[] = {
    field("model", kAnyText, store<&TemplateRequest::model>, "The model's name."),
};

}  // namespace

TokenizeRequest parse_tokenize_request(const Json& body, const RequestTerms& terms) {
  TokenizeRequest request;
  RequestReader reader(body, terms);
  // The default is true in vLLM's body, false in llama.cpp's.
  request.add_special_tokens = body.find_value("prompt") != nullptr;
  reader.read<TokenizeRequest>(kTokenizeFields, request);
  ChatInput input;
  reader.read<ChatInput>(kConversationFields, input);
  reader.finish();
  check_continuation(input);
  int num_inputs = 0;
  for (const std::string_view name : {"prompt", "content", "messages"}) {
    num_inputs += body.find_value(name) == nullptr ? 0 : 1;
  }
  if (num_inputs > 1) {
    throw RequestError("prompt", ErrorReason::invalid_value,
                       "prompt, content, messages: one of them");
  }
  if (body.find_value("messages") != nullptr) {
    request.messages = std::move(input);
  } else if (!request.text) {
    reader.require("prompt");
  }
  return request;
}

DetokenizeRequest parse_detokenize_request(const Json& body, const RequestTerms& terms) {
  return read_body<kDetokenizeFields>(body, terms);
}

TemplateRequest parse_template_request(const Json& body, const RequestTerms& terms) {
  TemplateRequest request;
  RequestReader reader(body, terms);
  reader.read<TemplateRequest>(kTemplateFields, request);
  reader.read<ChatInput>(kConversationFields, request.input);
  reader.finish();
  reader.require("messages");
  check_continuation(request.input);
  return request;
}

FieldList tokenize_request_fields() {
  FieldList list = fields_of<kTokenizeFields>();
  append_fields<ChatInput>(kConversationFields, list);
  return list;
}

FieldList detokenize_request_fields() { return fields_of<kDetokenizeFields>(); }

FieldList template_request_fields() {
  FieldList list = fields_of<kTemplateFields>();
  append_fields<ChatInput>(kConversationFields, list);
  for (FieldInfo& field : list) field.is_required = field.name == "messages";
  return list;
}

}  // namespace paceline
