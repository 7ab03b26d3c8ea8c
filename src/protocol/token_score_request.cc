#include "protocol/token_score_request.h"

#include "protocol/logprobs_json.h"
#include "protocol/token_names.h"

namespace paceline {
namespace {

constexpr FieldDef<TokenScoreRequest> kScoreFields[] = {
    required("input", kInputs,
             "A string, an array of strings (up to 2048), of token ids, or of arrays of token ids.",
             [](const FieldValue& v, TokenScoreRequest& t) { t.input = read_prompts(v); }),
    field("top_logprobs", kNumTopLogprobs, "Alternatives reported beside each token.",
          {.by_default = 0}, store<&TokenScoreRequest::top_logprobs>),
    field("add_special_tokens", kBoolean,
          "Encode a text with the special tokens (BOS) that the tokenizer adds.", kOn,
          store<&TokenScoreRequest::add_special_tokens>),
};

void write_scored(JsonWriter& writer, const TokenScoreRequest& request,
                  const std::vector<Logprob>& tokens, const TokenNames& names) {
  writer.key("token_ids").begin_array();
  for (const Logprob& token : tokens) writer.integer(token.id);
  writer.end_array().key("token_logprobs").begin_array();
  double sum = 0;
  for (const Logprob& token : tokens) {
    writer.value(token.logprob);
    sum += static_cast<double>(token.logprob.value_or(0.0f));
  }
  writer.end_array().member("logprob", sum);
  if (request.top_logprobs == 0) return;
  writer.key("prompt_logprobs");
  write_prompt_logprobs(writer, report_prompt(tokens, request.top_logprobs, names));
}

}  // namespace

TokenScoreRequest parse_token_score_request(const Json& body, const RequestTerms& terms) {
  return read_common_body<kScoreFields>(body, terms);
}

FieldList token_score_request_fields() { return common_and_own_fields<kScoreFields>(); }

std::string token_score_response_json(const TokenScoreRequest& request, const ItemAnswer& answer,
                                      const TokenNames& names) {
  return list_json(answer, "data", answer.scored.size(), [&](JsonWriter& writer, size_t i) {
    writer.member("object", "score").member("index", i);
    write_scored(writer, request, answer.scored[i], names);
  });
}

}  // namespace paceline
