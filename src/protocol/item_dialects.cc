// What is computed whole for each of several inputs: POST /v1/embeddings and /v1/decisions,
// OpenAI's; /v1/systemone, TypeSafe's; /v1/score, vLLM's; /v1/rerank, Jina's and Cohere's;
// /v1/classify and /v1/score_tokens, Paceline's own.
#include <type_traits>
#include <utility>

#include "protocol/dialect.h"

namespace paceline {
namespace {

// A call of a request that `write` answers, which may need the tokens' names.
template <auto parse_request, auto write, const std::string_view& id_prefix>
Call parse_items(const Json& body, const CallTerms& terms) {
  using Request = std::invoke_result_t<decltype(parse_request), const Json&, const RequestTerms&>;
  return ItemCall{
      .request = parse_request(body, terms.limits),
      .id_prefix = id_prefix,
      .write = [](const ItemRequest& any, ItemAnswer answer, const TokenNames& names) {
        const Request& request = std::get<Request>(any);
        if constexpr (std::is_invocable_v<decltype(write), const Request&, ItemAnswer>) {
          return write(request, std::move(answer));
        } else {
          return write(request, std::move(answer), names);
        }
      }};
}

}  // namespace

const Dialect kClassificationDialect = {
    .fields = classification_request_fields,
    .parse = parse_items<parse_classification_request, classification_response_json,
                         kClassificationIdPrefix>};
const Dialect kTokenScoreDialect = {
    .fields = token_score_request_fields,
    .parse =
        parse_items<parse_token_score_request, token_score_response_json, kTokenScoreIdPrefix>};
const Dialect kEmbeddingDialect = {
    .fields = embedding_request_fields,
    .parse = parse_items<parse_embedding_request, embedding_response_json, kEmbeddingIdPrefix>};
const Dialect kPairScoreDialect = {
    .fields = pair_score_request_fields,
    .parse = parse_items<parse_pair_score_request, pair_score_response_json, kPairScoreIdPrefix>};
const Dialect kDecisionDialect = {
    .fields = decision_request_fields,
    .parse = parse_items<parse_decision_request, decision_response_json, kDecisionIdPrefix>};
const Dialect kSystemOneDialect = {
    .fields = system_one_request_fields,
    .parse = parse_items<parse_system_one_request, system_one_response_json, kDecisionIdPrefix>};
const Dialect kRerankDialect = {
    .fields = rerank_request_fields,
    .parse = parse_items<parse_rerank_request, rerank_response_json, kRerankIdPrefix>};

}  // namespace paceline
