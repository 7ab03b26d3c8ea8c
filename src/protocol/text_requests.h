// The bodies of /tokenize, /detokenize and /apply-template, in the shapes of vLLM and llama.cpp.
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

// Each throws RequestError naming the first field that is wrong or unknown.
TokenizeRequest parse_tokenize_request(const Json& body, const RequestTerms& terms = {});
DetokenizeRequest parse_detokenize_request(const Json& body, const RequestTerms& terms = {});
TemplateRequest parse_template_request(const Json& body, const RequestTerms& terms = {});

FieldList tokenize_request_fields();
FieldList detokenize_request_fields();
FieldList template_request_fields();

}  // namespace paceline
