#include "protocol/pair_score_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/request_error.h"

namespace paceline {
namespace {

constexpr uint64_t kMaxTop = 1 << 30;

constexpr FieldType kPairTexts =
    one_of_type<kAnyText, kInputTexts>("a string or an array of strings");

struct DocumentFields {
  std::string text;
};
constexpr FieldDef<DocumentFields> kDocumentFields[] = {
    required("text", kAnyText, "The document.", store<&DocumentFields::text>),
};

constexpr FieldType kDocumentKinds[] = {kAnyText, object_type(fields_of<kDocumentFields>)};
constexpr FieldType kDocument =
    one_of_type(kDocumentKinds, "a string or an object with the member text");

std::string read_document(const FieldValue& value) {
  return value.json().is_string() ? value.text() : read_object<kDocumentFields>(value).text;
}

constexpr std::string_view kInstructionHelp =
    "What makes a document relevant, for models like Qwen3-Reranker.";

constexpr FieldDef<PairScoreRequest> kPairScoreFields[] = {
    required("text_1", kPairTexts, "The first text of each pair, or one for all.",
             [](const FieldValue& v, PairScoreRequest& t) { t.first = read_prompts(v); }),
    required("text_2", kPairTexts, "The second text of each pair.",
             [](const FieldValue& v, PairScoreRequest& t) { t.second = read_prompts(v); }),
    field("instruction", kAnyText, kInstructionHelp, store<&PairScoreRequest::instruction>),
};

constexpr FieldDef<RerankRequest> kRerankFields[] = {
    required("query", kAnyText, "What the documents are compared with.",
             store<&RerankRequest::query>),
    required("documents", array_type(kDocument, 1, kMaxInputs),
             "Strings, or objects with the member text (up to 2048).",
             [](const FieldValue& v, RerankRequest& t) {
               for (const FieldValue& item : v.items()) t.documents.push_back(read_document(item));
             }),
    field("top_n", integer_type(1, kMaxTop), "The number of results; all of them without it.",
          store<&RerankRequest::top_n>),
    field("return_documents", kBoolean, "Results have the documents' texts.", kOff,
          store<&RerankRequest::return_documents>),
    field("instruction", kAnyText, kInstructionHelp, store<&RerankRequest::instruction>),
};

}  // namespace

PairScoreRequest parse_pair_score_request(const Json& body, const RequestTerms& terms) {
  auto request = read_common_body<kPairScoreFields>(body, terms);
  const size_t num_first = request.first.prompts.size(), num_second = request.second.prompts.size();
  if (num_first != 1 && num_first != num_second) {
    throw invalid_field("text_1", "{} texts, expected 1 or as many as text_2 has ({})", num_first,
                        num_second);
  }
  return request;
}

RerankRequest parse_rerank_request(const Json& body, const RequestTerms& terms) {
  return read_common_body<kRerankFields>(body, terms);
}

FieldList pair_score_request_fields() { return common_and_own_fields<kPairScoreFields>(); }
FieldList rerank_request_fields() { return common_and_own_fields<kRerankFields>(); }

std::vector<TextPair> text_pairs(const PairScoreRequest& request) {
  std::vector<TextPair> pairs;
  for (size_t i = 0; i < request.second.prompts.size(); ++i) {
    const size_t first = request.first.prompts.size() == 1 ? 0 : i;
    pairs.push_back({.first = std::get<std::string>(request.first.prompts[first]),
                     .second = std::get<std::string>(request.second.prompts[i]),
                     .name = request.second.name("text_2", i)});
  }
  return pairs;
}

std::vector<TextPair> text_pairs(const RerankRequest& request) {
  std::vector<TextPair> pairs;
  for (size_t i = 0; i < request.documents.size(); ++i) {
    pairs.push_back({.first = request.query,
                     .second = request.documents[i],
                     .name = fmt::format("documents[{}]", i)});
  }
  return pairs;
}

std::string pair_score_response_json(const PairScoreRequest& /*request*/,
                                     const ItemAnswer& answer) {
  const std::vector<float>& scores = answer.pair_scores;
  return list_json(answer, "data", scores.size(), [&](JsonWriter& writer, size_t i) {
    writer.member("object", "score").member("index", i).member("score", scores[i]);
  });
}

std::string rerank_response_json(const RerankRequest& request, const ItemAnswer& answer) {
  const std::vector<float>& scores = answer.pair_scores;
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  const auto most = static_cast<size_t>(request.top_n.value_or(std::ssize(order)));
  if (order.size() > most) order.resize(most);
  return list_json(answer, "results", order.size(), [&](JsonWriter& writer, size_t i) {
    const size_t index = order[i];
    writer.member("index", index).member("relevance_score", scores[index]);
    if (!request.return_documents) return;
    writer.key("document").begin_object().member("text", request.documents[index]).end_object();
  });
}

}  // namespace paceline
