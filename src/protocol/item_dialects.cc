// What is computed whole for each of several inputs: POST /v1/embeddings and /v1/decisions,
// OpenAI's; /v1/systemone, TypeSafe's; /v1/score, vLLM's; /v1/rerank, Jina's and Cohere's;
// /v1/classify and /v1/score_tokens, Paceline's own.
#include "protocol/dialect.h"

namespace paceline {
namespace {

// A call of a request that `write` answers.
template <class Request, Request (*parse_request)(const Json&, const RequestTerms&),
          std::string (*write)(const Request&, ItemAnswer, const TokenNames&),
          const std::string_view& id_prefix>
Call parse_items(const Json& body, const CallTerms& terms) {
  return ItemCall{
      .request = parse_request(body, terms.limits),
      .id_prefix = id_prefix,
      .write = [](const ItemRequest& request, ItemAnswer answer, const TokenNames& names) {
        return write(std::get<Request>(request), std::move(answer), names);
      }};
}

std::string write_classes(const ClassificationRequest& request, ItemAnswer answer,
                          const TokenNames& /*names*/) {
  return classification_response_json(
      completed_response(request, answer.classified, std::move(answer.head)));
}

std::string write_token_scores(const TokenScoreRequest& request, ItemAnswer answer,
                               const TokenNames& names) {
  return token_score_response_json(request, answer.head, answer.scored, names, answer.usage);
}

std::string write_embeddings(const EmbeddingRequest& request, ItemAnswer answer,
                             const TokenNames& /*names*/) {
  return embedding_response_json(request, answer.head, answer.embeddings, answer.usage);
}

std::string write_pair_scores(const PairScoreRequest& /*request*/, ItemAnswer answer,
                              const TokenNames& /*names*/) {
  return pair_score_response_json(answer.head, answer.pair_scores, answer.usage);
}

std::string write_ranking(const RerankRequest& request, ItemAnswer answer,
                          const TokenNames& /*names*/) {
  return rerank_response_json(request, answer.head, answer.pair_scores, answer.usage);
}

template <std::string (*write)(const DecisionRequest&, std::string_view, const Decisions&)>
std::string write_decisions(const DecisionRequest& request, ItemAnswer answer,
                            const TokenNames& /*names*/) {
  return write(request, answer.head.model, answer.decisions);
}

}  // namespace

const Dialect kClassificationDialect = {
    .fields = classification_request_fields,
    .parse = parse_items<ClassificationRequest, parse_classification_request, write_classes,
                         kClassificationIdPrefix>};
const Dialect kTokenScoreDialect = {
    .fields = token_score_request_fields,
    .parse = parse_items<TokenScoreRequest, parse_token_score_request, write_token_scores,
                         kTokenScoreIdPrefix>};
const Dialect kEmbeddingDialect = {.fields = embedding_request_fields,
                                   .parse = parse_items<EmbeddingRequest, parse_embedding_request,
                                                        write_embeddings, kEmbeddingIdPrefix>};
const Dialect kPairScoreDialect = {.fields = pair_score_request_fields,
                                   .parse = parse_items<PairScoreRequest, parse_pair_score_request,
                                                        write_pair_scores, kPairScoreIdPrefix>};
const Dialect kDecisionDialect = {
    .fields = decision_request_fields,
    .parse = parse_items<DecisionRequest, parse_decision_request,
                         write_decisions<decision_response_json>, kDecisionIdPrefix>};
const Dialect kSystemOneDialect = {
    .fields = system_one_request_fields,
    .parse = parse_items<DecisionRequest, parse_system_one_request,
                         write_decisions<system_one_response_json>, kDecisionIdPrefix>};
const Dialect kRerankDialect = {
    .fields = rerank_request_fields,
    .parse = parse_items<RerankRequest, parse_rerank_request, write_ranking, kRerankIdPrefix>};

}  // namespace paceline
