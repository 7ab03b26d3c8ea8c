#include "protocol/text_requests.h"

#include "base/request_error.h"
#include "protocol/chat_messages.h"
#include "protocol/chat_tools.h"

namespace paceline {
namespace {

constexpr FieldDef<TokenizeRequest> kTokenizeFields[] = {
    {.name = "model",
     .type = kAnyText,
     .help = "The model's name.",
     .read = [](const FieldValue& v, TokenizeRequest& t) { t.model = v.text(); }},
    {.name = "prompt",
     .type = kAnyText,
     .help = "The text (vLLM's name); one of prompt, content and messages must be there.",
     .read = [](const FieldValue& v, TokenizeRequest& t) { t.text = v.text(); }},
    {.name = "content",
     .type = kAnyText,
     .alias_of = "prompt",
     .help = "The text (llama.cpp's name).",
     .read = [](const FieldValue& v, TokenizeRequest& t) { t.text = v.text(); }},
    {.name = "add_special_tokens",
     .type = kBoolean,
     .help = "Add the special tokens (BOS) that the tokenizer adds; true with prompt, else false.",
     .read = [](const FieldValue& v, TokenizeRequest& t) { t.add_special_tokens = v.boolean(); }},
    {.name = "add_special",
     .type = kBoolean,
     .alias_of = "add_special_tokens",
     .help = "The same (llama.cpp's name).",
     .read = [](const FieldValue& v, TokenizeRequest& t) { t.add_special_tokens = v.boolean(); }},
    {.name = "parse_special",
     .type = kBoolean,
     .by_default = true,
     .help = "Special tokens written in the text are recognised.",
     .read = [](const FieldValue& v, TokenizeRequest& t) { t.parse_special = v.boolean(); }},
    {.name = "return_token_strs",
     .type = kBoolean,
     .by_default = false,
     .help = "Add the tokens' texts as token_strs.",
     .read = [](const FieldValue& v, TokenizeRequest& t) { t.return_token_strs = v.boolean(); }},
    {.name = "with_pieces",
     .type = kBoolean,
     .by_default = false,
     .help = "Tokens become objects of id and piece.",
     .read = [](const FieldValue& v, TokenizeRequest& t) { t.with_pieces = v.boolean(); }},
};

constexpr FieldDef<DetokenizeRequest> kDetokenizeFields[] = {
    {.name = "model",
     .type = kAnyText,
     .help = "The model's name.",
     .read = [](const FieldValue& v, DetokenizeRequest& t) { t.model = v.text(); }},
    {.name = "tokens",
     .type = array_type(kTokenId, 0, kMaxListedTokens),
     .is_required = true,
     .help = "The token ids.",
     .read = [](const FieldValue& v, DetokenizeRequest& t) { t.tokens = v.token_ids(); }},
};

constexpr FieldDef<ChatInput> kConversationFields[] = {
    {.name = "messages",
     .type = kMessages,
     .help = "The conversation.",
     .read =
         [](const FieldValue& v, ChatInput& t) {
           std::vector<std::string> warnings;
           t.messages = read_messages(v, warnings);
         }},
    {.name = "tools",
     .type = kTools,
     .help = "Tools for the template.",
     .read =
         [](const FieldValue& v, ChatInput& t) {
           TurnRequest turn;
           t.tools_json = read_tools(v, turn);
         }},
    {.name = "chat_template_kwargs",
     .type = kAnyObject,
     .help = "Further variables of the template.",
     .read = [](const FieldValue& v, ChatInput& t) { t.kwargs_json = read_template_variables(v); }},
    {.name = "add_generation_prompt",
     .type = kBoolean,
     .by_default = true,
     .help = "End with the beginning of the answer.",
     .read = [](const FieldValue& v, ChatInput& t) { t.add_generation_prompt = v.boolean(); }},
    {.name = "continue_final_message",
     .type = kBoolean,
     .by_default = false,
     .help = "End with the last message, open; add_generation_prompt must be false.",
     .read = [](const FieldValue& v, ChatInput& t) { t.continue_final_message = v.boolean(); }},
};

constexpr FieldDef<TemplateRequest> kTemplateFields[] = {
    {.name = "model",
     .type = kAnyText,
     .help = "The model's name.",
     .read = [](const FieldValue& v, TemplateRequest& t) { t.model = v.text(); }},
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
  DetokenizeRequest request;
  RequestReader reader(body, terms);
  reader.read<DetokenizeRequest>(kDetokenizeFields, request);
  reader.finish();
  return request;
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
  FieldList list;
  append_fields<TokenizeRequest>(kTokenizeFields, list);
  append_fields<ChatInput>(kConversationFields, list);
  return list;
}

FieldList detokenize_request_fields() {
  FieldList list;
  append_fields<DetokenizeRequest>(kDetokenizeFields, list);
  return list;
}

FieldList template_request_fields() {
  FieldList list = list_fields<TemplateRequest>(kTemplateFields);
  append_fields<ChatInput>(kConversationFields, list);
  for (FieldInfo& field : list) field.is_required = field.name == "messages";
  return list;
}

}  // namespace paceline
