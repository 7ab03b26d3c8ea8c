// What needs the tokenizer and the template only: /tokenize, /detokenize, /apply-template.
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "base/request_error.h"
#include "base/utf8.h"
#include "engine/engine.h"
#include "protocol/plain_requests.h"
#include "server/model_call.h"
#include "server/request_rules.h"
#include "server/routes.h"
#include "text/chat_prompt.h"

namespace paceline {
namespace {

using TextJob = std::string (*)(const TextModel& model, const Json& body,
                                const RequestRules& rules);

const Tokenizer& tokenizer_of(const TextModel& model) {
  if (model.tokenizer != nullptr) return *model.tokenizer;
  throw RequestError("", ErrorReason::feature_disabled, model.name + ": has no tokenizer.json",
                     ErrorCode::not_found);
}

std::string token_text(const Tokenizer& tokenizer, TokenId id) {
  return replace_invalid_utf8(tokenizer.token_bytes(id));
}

// Text where it is well-formed, else its bytes.
void write_piece(JsonWriter& writer, std::string_view bytes) {
  if (is_valid_utf8(bytes)) {
    writer.string(bytes);
    return;
  }
  writer.begin_array();
  for (const char byte : bytes) writer.integer(static_cast<unsigned char>(byte));
  writer.end_array();
}

std::string tokenized(const TextModel& model, const Json& body, const RequestRules& rules) {
  const TokenizeRequest request = parse_tokenize_request(body, rules.terms);
  adapter_named(model, rules, request.model);
  const Tokenizer& tokenizer = tokenizer_of(model);
  const RenderedChat chat = request.messages ? render_chat(model, *request.messages)
                                             : RenderedChat{.text = *request.text};
  const std::vector<TokenId> ids =
      tokenizer.encode(chat.text, {.add_special = request.add_special_tokens && !request.messages,
                                   .specials_as_text = !request.parse_special,
                                   .plain = chat.typed});
  return object_json([&](JsonWriter& writer) {
    writer.member("count", ids.size());
    writer.member("max_model_len", model.engine.limits().max_model_len);
    if (request.with_pieces) {
      writer.key("tokens").begin_array();
      for (const TokenId id : ids) {
        writer.begin_object().member("id", id).key("piece");
        write_piece(writer, tokenizer.token_bytes(id));
        writer.end_object();
      }
      writer.end_array();
    } else {
      writer.member("tokens", ids);
    }
    if (request.return_token_strs) {
      writer.key("token_strs").begin_array();
      for (const TokenId id : ids) writer.string(token_text(tokenizer, id));
      writer.end_array();
    }
  });
}

// Under vLLM's name and under llama.cpp's.
std::string detokenized(const TextModel& model, const Json& body, const RequestRules& rules) {
  const DetokenizeRequest request = parse_detokenize_request(body, rules.terms);
  adapter_named(model, rules, request.model);
  const Tokenizer& tokenizer = tokenizer_of(model);
  check_token_ids(request.tokens, tokenizer.vocab_size(), "tokens");
  const std::string text = tokenizer.decode(request.tokens);
  return object_json(
      [&](JsonWriter& writer) { writer.member("prompt", text).member("content", text); });
}

std::string templated(const TextModel& model, const Json& body, const RequestRules& rules) {
  const TemplateRequest request = parse_template_request(body, rules.terms);
  adapter_named(model, rules, request.model);
  return object_json(
      [&](JsonWriter& writer) { writer.member("prompt", render_chat(model, request.input).text); });
}

void handle_text(const CallPtr& call, TextJob job) {
  on_model(call, [job, take = take_body(*call)] {
    const auto body = std::make_shared<Json>(take());
    return ModelJob{.model = named_model(*body),
                    .run = [job, body](HostedModel& model) -> Continuation {
                      return respond_with({.body = job(model.text, *body, model.rules)});
                    }};
  });
}

}  // namespace

void handle_tokenize(const CallPtr& call) { handle_text(call, tokenized); }
void handle_detokenize(const CallPtr& call) { handle_text(call, detokenized); }
void handle_apply_template(const CallPtr& call) { handle_text(call, templated); }

}  // namespace paceline
