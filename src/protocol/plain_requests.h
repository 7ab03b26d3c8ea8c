// The bodies of routes without a dialect: /tokenize, /detokenize and /apply-template, in the shapes
// of vLLM and llama.cpp; /models/load and /models/unload, in llama.cpp's; /v1/load_lora_adapter and
// /v1/unload_lora_adapter, in vLLM's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "paceline/chat_template.h"
#include "protocol/request_fields.h"

namespace paceline {

struct TokenizeRequest {
  std::optional<std::string> model;
  std::optional<std::string> text;    // "prompt" or "content", or
  std::optional<ChatInput> messages;  // a conversation
  bool add_special_tokens = false;    // "add_special" too
  bool parse_special = true;
  bool return_token_strs = false;
  bool with_pieces = false;  // llama.cpp's: tokens are objects {"id", "piece"}
};

struct DetokenizeRequest {
  std::optional<std::string> model;
  std::vector<int32_t> tokens;
};

struct TemplateRequest {
  std::optional<std::string> model;
  ChatInput input;
};

struct ModelRequest {
  std::string model;
};

struct LoadAdapterRequest {
  std::string name;
  std::string path;
  bool replaces = false;
  std::optional<std::string> model;  // that it is for; nothing: the first one
};

struct UnloadAdapterRequest {
  std::string name;
};

// Each throws RequestError naming the first field that is wrong or unknown.
TokenizeRequest parse_tokenize_request(const Json& body, const RequestTerms& terms = {});
DetokenizeRequest parse_detokenize_request(const Json& body, const RequestTerms& terms = {});
TemplateRequest parse_template_request(const Json& body, const RequestTerms& terms = {});
ModelRequest parse_model_request(const Json& body, const RequestTerms& terms = {});
LoadAdapterRequest parse_load_adapter_request(const Json& body, const RequestTerms& terms = {});
UnloadAdapterRequest parse_unload_adapter_request(const Json& body, const RequestTerms& terms = {});

FieldList tokenize_request_fields();
FieldList detokenize_request_fields();
FieldList template_request_fields();
FieldList model_request_fields();
FieldList load_adapter_request_fields();
FieldList unload_adapter_request_fields();

}  // namespace paceline
