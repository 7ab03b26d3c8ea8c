// Every kind of request: its fields, its smallest body, and its parser.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "protocol/anthropic_request.h"
#include "protocol/decision_request.h"
#include "protocol/embedding_request.h"
#include "protocol/llama_request.h"
#include "protocol/pair_score_request.h"
#include "protocol/plain_requests.h"
#include "protocol/responses_request.h"
#include "protocol/token_score_request.h"
#include "tests/protocol/requests.h"

namespace paceline {

struct Endpoint {
  std::string_view name;
  FieldList fields;
  std::string required;  // the members of the smallest request, without braces
  void (*parse)(const std::string& body);

  bool requires_field(std::string_view field) const {
    return required.find("\"" + std::string(field) + "\":") == 0 ||
           required.find(", \"" + std::string(field) + "\":") != std::string::npos;
  }
  // The required members but this one, with a comma behind each.
  std::string required_beside(std::string_view field) const {
    std::string text;
    const Json all = parse_json("{" + required + "}", "body");
    for (const auto& [member, value] : all.as_object("body")) {
      if (member != field) text += "\"" + member + "\": " + to_json(value) + ", ";
    }
    return text;
  }
};

inline Json body_json(const std::string& body) { return parse_json(body, "body"); }

inline std::vector<Endpoint> endpoints() {
  return {
      {"completions", completion_request_fields(), R"("prompt": "x")",
       [](const std::string& body) { parse_completion_request(body_json(body)); }},
      {"chat", chat_request_fields(), R"("messages": [{"role": "user", "content": "x"}])",
       [](const std::string& body) { parse_chat_request(body_json(body)); }},
      {"generate", kGenerateDialect.fields(), R"("prompt": "x")",
       [](const std::string& body) { writer_of(kGenerateDialect, body); }},
      {"completion", llama_request_fields(), R"("prompt": "x")",
       [](const std::string& body) { parse_llama_request(body_json(body)); }},
      {"infill", infill_request_fields(), R"("input_prefix": "x")",
       [](const std::string& body) { parse_infill_request(body_json(body)); }},
      {"classify", classification_request_fields(), R"("input": "x")",
       [](const std::string& body) { parse_classification_request(body_json(body)); }},
      {"embeddings", embedding_request_fields(), R"("input": "x")",
       [](const std::string& body) { parse_embedding_request(body_json(body)); }},
      {"decisions", decision_request_fields(),
       R"("input": "x", "questions": [{"type": "predicate", "instructions": "y"}])",
       [](const std::string& body) { parse_decision_request(body_json(body)); }},
      {"systemone", system_one_request_fields(),
       R"("state": "x", "questions": {"q": {"type": "noul", "instructions": "y"}})",
       [](const std::string& body) { parse_system_one_request(body_json(body)); }},
      {"score", pair_score_request_fields(), R"("text_1": "x", "text_2": "y")",
       [](const std::string& body) { parse_pair_score_request(body_json(body)); }},
      {"rerank", rerank_request_fields(), R"("query": "x", "documents": ["y"])",
       [](const std::string& body) { parse_rerank_request(body_json(body)); }},
      {"score_tokens", token_score_request_fields(), R"("input": "x")",
       [](const std::string& body) { parse_token_score_request(body_json(body)); }},
      {"tokenize", tokenize_request_fields(), R"("prompt": "x")",
       [](const std::string& body) { parse_tokenize_request(body_json(body)); }},
      {"detokenize", detokenize_request_fields(), R"("tokens": [1])",
       [](const std::string& body) { parse_detokenize_request(body_json(body)); }},
      {"messages", anthropic::request_fields(),
       R"("max_tokens": 1, "messages": [{"role": "user", "content": "x"}])",
       [](const std::string& body) { anthropic::parse_request(body_json(body)); }},
      {"count_tokens", anthropic::prompt_fields(),
       R"("messages": [{"role": "user", "content": "x"}])",
       [](const std::string& body) { anthropic::parse_prompt(body_json(body)); }},
      {"responses", responses::request_fields(), R"("input": "x")",
       [](const std::string& body) {
         responses::parse_request(body_json(body), {.limits = RequestTerms()});
       }},
      {"compact", responses::prompt_fields(), R"("input": "x")",
       [](const std::string& body) {
         responses::parse_compaction(body_json(body), {.limits = RequestTerms()});
       }},
      {"template", template_request_fields(), R"("messages": [{"role": "user", "content": "x"}])",
       [](const std::string& body) { parse_template_request(body_json(body)); }},
  };
}

}  // namespace paceline
