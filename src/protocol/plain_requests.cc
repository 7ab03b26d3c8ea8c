#include "protocol/plain_requests.h"

#include "base/request_error.h"
#include "protocol/chat_messages.h"
#include "protocol/chat_tools.h"

namespace paceline {
namespace {

constexpr FieldDef<TokenizeRequest> kTokenizeFields[] = {
    field("model", kAnyText, "The model's name.", store<&TokenizeRequest::model>),
    field("prompt", kAnyText,
          "The text (vLLM's name); one of prompt, content and messages must be there.",
          store<&TokenizeRequest::text>),
    field("content", kAnyText, "The text (llama.cpp's name).", {.alias_of = "prompt"},
          store<&TokenizeRequest::text>),
    field("add_special_tokens", kBoolean,
          "Add the special tokens (BOS) that the tokenizer adds; true with prompt, else false.",
          store<&TokenizeRequest::add_special_tokens>),
    field("add_special", kBoolean, "The same (llama.cpp's name).",
          {.alias_of = "add_special_tokens"}, store<&TokenizeRequest::add_special_tokens>),
    field("parse_special", kBoolean, "Special tokens written in the text are recognised.", kOn,
          store<&TokenizeRequest::parse_special>),
    field("return_token_strs", kBoolean, "Add the tokens' texts as token_strs.", kOff,
          store<&TokenizeRequest::return_token_strs>),
    field("with_pieces", kBoolean, "Tokens become objects of id and piece.", kOff,
          store<&TokenizeRequest::with_pieces>),
};

constexpr FieldDef<DetokenizeRequest> kDetokenizeFields[] = {
    field("model", kAnyText, "The model's name.", store<&DetokenizeRequest::model>),
    required("tokens", array_type(kTokenId, 0, kMaxListedTokens), "The token ids.",
             store<&DetokenizeRequest::tokens>),
};

constexpr FieldDef<ChatInput> kConversationFields[] = {
    field("messages", kMessages, "The conversation.",
          [](const FieldValue& v, ChatInput& t) {
            std::vector<std::string> warnings;
            t.messages = read_messages(v, warnings);
          }),
    field("tools", kTools, "Tools for the template.",
          [](const FieldValue& v, ChatInput& t) {
            TurnRequest turn;
            t.tools_json = read_tools(v, turn);
          }),
    field("chat_template_kwargs", kAnyObject, "Further variables of the template.",
          [](const FieldValue& v, ChatInput& t) { t.kwargs_json = read_template_variables(v); }),
    field("add_generation_prompt", kBoolean, "End with the beginning of the answer.", kOn,
          store<&ChatInput::add_generation_prompt>),
    field("continue_final_message", kBoolean,
          "End with the last message, open; add_generation_prompt must be false.", kOff,
          store<&ChatInput::continue_final_message>),
};

constexpr FieldDef<TemplateRequest> kTemplateFields[] = {
    field("model", kAnyText, "The model's name.", store<&TemplateRequest::model>),
};

constexpr FieldDef<ModelRequest> kModelFields[] = {
    required("model", kAnyText, "The model's name.", store<&ModelRequest::model>),
};

constexpr FieldDef<LoadAdapterRequest> kLoadFields[] = {
    required("lora_name", kAnyText, "The adapter's name, which requests give as their model.",
             store<&LoadAdapterRequest::name>),
    required("lora_path", kAnyText, "Its directory or file, beneath --lora-directory.",
             store<&LoadAdapterRequest::path>),
    field("load_inplace", kBoolean,
          "Replace an adapter of this name; its running requests end with the old one.", kOff,
          store<&LoadAdapterRequest::replaces>),
    field("model", kAnyText, "The model that it is for; the first one by default.",
          store<&LoadAdapterRequest::model>),
};

constexpr FieldDef<UnloadAdapterRequest> kUnloadFields[] = {
    required("lora_name", kAnyText, "The adapter's name; its running requests go on to their end.",
             store<&UnloadAdapterRequest::name>),
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

ModelRequest parse_model_request(const Json& body, const RequestTerms& terms) {
  return read_body<kModelFields>(body, terms);
}

LoadAdapterRequest parse_load_adapter_request(const Json& body, const RequestTerms& terms) {
  return read_body<kLoadFields>(body, terms);
}

UnloadAdapterRequest parse_unload_adapter_request(const Json& body, const RequestTerms& terms) {
  return read_body<kUnloadFields>(body, terms);
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

FieldList model_request_fields() { return fields_of<kModelFields>(); }
FieldList load_adapter_request_fields() { return fields_of<kLoadFields>(); }
FieldList unload_adapter_request_fields() { return fields_of<kUnloadFields>(); }

}  // namespace paceline
