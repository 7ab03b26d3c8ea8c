// Pairs of texts to score: PairScoreRequest is the body of POST /v1/score, in vLLM's format, and
// RerankRequest that of POST /v1/rerank, in Jina's and Cohere's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/request_fields.h"
#include "protocol/response.h"
#include "text/pair_scoring.h"

namespace paceline {

struct PairScoreRequest {
  CommonFields common;
  PromptList first;   // `text_1`: texts
  PromptList second;  // `text_2`: texts
  std::optional<std::string> instruction;
};

struct RerankRequest {
  CommonFields common;
  std::string query;
  std::vector<std::string> documents;
  std::optional<int64_t> top_n;  // results; all without it
  bool return_documents = false;
  std::optional<std::string> instruction;
};

// Each throws RequestError naming the first field that is wrong, unknown or not supported.
PairScoreRequest parse_pair_score_request(const Json& body, const RequestTerms& terms = {});
RerankRequest parse_rerank_request(const Json& body, const RequestTerms& terms = {});

FieldList pair_score_request_fields();
FieldList rerank_request_fields();

// The pairs in the order of their indices. One text_1 goes with each text_2.
std::vector<TextPair> text_pairs(const PairScoreRequest& request);
std::vector<TextPair> text_pairs(const RerankRequest& request);

constexpr std::string_view kPairScoreIdPrefix = "score-";
constexpr std::string_view kRerankIdPrefix = "rerank-";

// {"id", "object": "list", "created", "model", "data": [{"object": "score", "index", "score"}],
// "usage"}
std::string pair_score_response_json(const PairScoreRequest& request, const ItemAnswer& answer);
// {"id", "object": "list", "created", "model", "results": [{"index", "relevance_score", "document":
// {"text"}}], "usage"}: the highest score first, equal ones in the documents' order.
std::string rerank_response_json(const RerankRequest& request, const ItemAnswer& answer);

}  // namespace paceline
