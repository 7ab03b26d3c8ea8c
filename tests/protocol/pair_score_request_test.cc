// The bodies of /v1/score and /v1/rerank, and their answers.
#include <gtest/gtest.h>

#include "protocol/api_error.h"
#include "protocol/pair_score_request.h"
#include "tests/expect_error.h"
#include "tests/protocol/requests.h"

namespace paceline {
namespace {

PairScoreRequest pair_score(const std::string& body) {
  return parse_pair_score_request(parse_json(body, "body"));
}

RerankRequest rerank(const std::string& body) {
  return parse_rerank_request(parse_json(body, "body"));
}

std::vector<std::string> shown(const std::vector<TextPair>& pairs) {
  std::vector<std::string> all;
  for (const TextPair& pair : pairs) {
    all.push_back(pair.first + "|" + pair.second + "|" + pair.name);
  }
  return all;
}

TEST(PairScoreRequest, PairsTexts) {
  using Shown = std::vector<std::string>;
  EXPECT_EQ(shown(text_pairs(pair_score(R"({"text_1": "a", "text_2": "b"})"))),
            Shown{"a|b|text_2"});
  EXPECT_EQ(shown(text_pairs(pair_score(R"({"text_1": "a", "text_2": ["b", "c"]})"))),
            (Shown{"a|b|text_2[0]", "a|c|text_2[1]"}));
  EXPECT_EQ(shown(text_pairs(pair_score(R"({"text_1": ["a", "d"], "text_2": ["b", "c"]})"))),
            (Shown{"a|b|text_2[0]", "d|c|text_2[1]"}));
  expect_error(ErrorCode::invalid, {"text_1: 2 texts", "text_2 has (3)"},
               [] { pair_score(R"({"text_1": ["a", "b"], "text_2": ["c", "d", "e"]})"); });
  expect_error(ErrorCode::invalid, {"text_2"}, [] { pair_score(R"({"text_1": "a"})"); });
  expect_error(ErrorCode::invalid, {"text_2"},
               [] { pair_score(R"({"text_1": "a", "text_2": [1]})"); });
}

TEST(RerankRequest, DocumentsAreTextsOrObjects) {
  const RerankRequest request = rerank(
      R"({"query": "q", "documents": ["a", {"text": "b"}], "top_n": 1, "return_documents": true,
          "instruction": "i"})");
  EXPECT_EQ(request.documents, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request.top_n, 1);
  EXPECT_TRUE(request.return_documents);
  EXPECT_EQ(request.instruction, "i");
  EXPECT_EQ(text_pairs(request)[1].name, "documents[1]");
  for (const char* const documents : {"[]", R"([{"txt": "b"}])", "[3]", R"("a")"}) {
    expect_error(ErrorCode::invalid, {"documents"},
                 [&] { rerank(std::string(R"({"query": "q", "documents": )") + documents + "}"); });
  }
}

TEST(RerankRequest, TheHighestScoreComesFirst) {
  const ItemAnswer scored{
      .head = {.id = "rerank-1", .created = 5, .model = "m", .system_fingerprint = {}},
      .pair_scores = {0.25f, 0.5f, 0.25f}};
  const RerankRequest all = rerank(R"({"query": "q", "documents": ["a", "b", "c"]})");
  const std::string whole = rerank_response_json(all, scored);
  EXPECT_NE(whole.find(R"("results":[{"index":1,"relevance_score":0.5},)"
                       R"({"index":0,"relevance_score":0.25},{"index":2,"relevance_score":0.25}])"),
            std::string::npos)
      << whole;
  const RerankRequest one = rerank(
      R"({"query": "q", "documents": ["a", "b", "c"], "top_n": 1, "return_documents": true})");
  EXPECT_NE(rerank_response_json(one, scored)
                .find(R"("results":[{"index":1,"relevance_score":0.5,"document":{"text":"b"}}])"),
            std::string::npos);
}

}  // namespace
}  // namespace paceline
