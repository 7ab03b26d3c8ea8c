#include "protocol/text_requests.h"

#include "protocol/api_error.h"
#include "protocol/chat_messages.h"
#include "protocol/chat_tools.h"

namespace paceline {
namespace {

constexpr size_t kMaxTokens = 1 << 20;

constexpr FieldDef<TokenizeRequest> kTokenizeFields[] = {
    {.name = "model",
     .help = "The model's name.",
     .read = [](const FieldValue& v, TokenizeRequest& t) { t.model = v.text(); }},
    {.name = "prompt",
     .help = "The text (vLLM's name).",
     .read = [](const FieldValue& v, TokenizeRequest& t) { t.text = v.text(); }},
    {.name = "content",
     .help = "The text (llama.cpp's name).",
     .read = [](const FieldValue& v, TokenizeRequest& t) { t.text = v.text(); }},
    {.name = "add_special_tokens",
     .help = "Add the special tokens (BOS) that the tokenizer adds; vLLM's default is true.",
     .read = [](const FieldValue& v, TokenizeRequest& t) { t.add_special_tokens = v.boolean(); }},
    {.name = "add_special",
     .help = "The same (llama.cpp's name).",
     .read = [](const FieldValue& v, TokenizeRequest& t) { t.add_special_tokens = v.boolean(); }},
    {.name = "parse_special",
     .help = "Special tokens written in the text are recognised.",
     .read = [](const FieldValue& v, TokenizeRequest& t) { t.parse_special = v.boolean(); }},
    {.name = "return_token_strs",
     .help = "Add the tokens' texts as token_strs.",
     .read = [](const FieldValue& v, TokenizeRequest& t) { t.return_token_strs = v.boolean(); }},
    {.name = "with_pieces",
     .help = "Tokens become objects of id and piece.",
     .read = [](const FieldValue& v, TokenizeRequest& t) { t.with_pieces = v.boolean(); }},
};

constexpr FieldDef<DetokenizeRequest> kDetokenizeFields[] = {
    {.name = "model",
     .help = "The model's name.",
     .read = [](const FieldValue& v, DetokenizeRequest& t) { t.model = v.text(); }},
    {.name = "tokens",
     .help = "The token ids.",
     .read = [](const FieldValue& v, DetokenizeRequest& t) { t.tokens = v.token_ids(kMaxTokens); }},
};

constexpr FieldDef<ChatInput> kChatFields[] = {
    {.name = "messages",
     .help = "The conversation.",
     .read = [](const FieldValue& v, ChatInput& t) { t.messages = read_messages(v); }},
    {.name = "tools",
     .help = "Tools for the template.",
     .read = [](const FieldValue& v, ChatInput& t) { t.tools_json = read_tools(v); }},
    {.name = "chat_template_kwargs",
     .help = "Further variables of the template.",
     .read = [](const FieldValue& v, ChatInput& t) { t.kwargs_json = read_template_variables(v); }},
    {.name = "add_generation_prompt",
     .help = "End with the beginning of the answer.",
     .read = [](const FieldValue& v, ChatInput& t) { t.add_generation_prompt = v.boolean(); }},
};

constexpr FieldDef<TemplateRequest> kTemplateFields[] = {
    {.name = "model",
     .help = "The model's name.",
     .read = [](const FieldValue& v, TemplateRequest& t) { t.model = v.text(); }},
};

}  // namespace

TokenizeRequest parse_tokenize_request(const Json& body) {
  TokenizeRequest request;
  RequestReader reader(body);
  // vLLM's body asks for special tokens unless it says otherwise, llama.cpp's doesn't.
  request.add_special_tokens = body.find_value("prompt") != nullptr;
  reader.read<TokenizeRequest>(kTokenizeFields, request);
  ChatInput input;
  reader.read<ChatInput>(kChatFields, input);
  reader.finish();
  if (body.find_value("messages") != nullptr) {
    request.messages = std::move(input);
  } else if (!request.text) {
    reader.require("prompt");
  }
  return request;
}

DetokenizeRequest parse_detokenize_request(const Json& body) {
  DetokenizeRequest request;
  RequestReader reader(body);
  reader.read<DetokenizeRequest>(kDetokenizeFields, request);
  reader.finish();
  reader.require("tokens");
  return request;
}

TemplateRequest parse_template_request(const Json& body) {
  TemplateRequest request;
  RequestReader reader(body);
  reader.read<TemplateRequest>(kTemplateFields, request);
  reader.read<ChatInput>(kChatFields, request.input);
  reader.finish();
  reader.require("messages");
  return request;
}

std::vector<FieldInfo> tokenize_request_fields() {
  std::vector<FieldInfo> list;
  append_fields<TokenizeRequest>(kTokenizeFields, list);
  append_fields<ChatInput>(kChatFields, list);
  return list;
}

std::vector<FieldInfo> detokenize_request_fields() {
  std::vector<FieldInfo> list;
  append_fields<DetokenizeRequest>(kDetokenizeFields, list);
  return list;
}

std::vector<FieldInfo> template_request_fields() {
  std::vector<FieldInfo> list;
  append_fields<TemplateRequest>(kTemplateFields, list);
  append_fields<ChatInput>(kChatFields, list);
  return list;
}

}  // namespace paceline
