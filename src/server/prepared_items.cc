// What is done before the engine for classifications, scores and embeddings.

#include "engine/engine.h"
#include "protocol/request_body.h"
#include "protocol/request_options.h"
#include "protocol/response.h"
#include "server/item_response.h"
#include "server/prepared_request.h"
#include "text/embedding.h"
#include "text/make_request.h"

namespace paceline {
namespace {

int64_t response_bytes(const ClassificationRequest& request, int64_t vocab_size) {
  const int64_t num_logits = request.with_logits ? vocab_size : 0;
  return std::ssize(request.input.prompts) * kJsonNumberBytes *
         (num_logits + std::ssize(request.labels));
}

}  // namespace

PreparedItems prepare_classification(const TextModel& model, const ReceivedRequest& received,
                                     const RequestRules& rules) {
  ClassificationRequest request =
      parse_classification_request(parse_request_body(received.body), rules.terms);
  apply_rules(model, rules, received, request.common);
  PreparedItems prepared{.request = {}, .items = {}};
  prepared.response_bytes = response_bytes(request, model.engine.vocab_size());
  check_response_size(rules, prepared.response_bytes,
                      request.with_logits ? "with_logits" : "labels");
  prepared.items.reserve(request.input.prompts.size());
  for (size_t i = 0; i < request.input.prompts.size(); ++i) {
    PreparedItem& item = prepared.items.emplace_back();
    item.job.emplace(model, request.input.prompts[i],
                     classification_options(request, i, std::nullopt, {}));
    item.prompt_tokens = item.job->prompt_tokens();
    item.requests = item.job->take_requests();
    for (GenerateRequest& one : item.requests) {
      one.priority = request.common.priority;
      model.engine.check(one);
    }
  }
  prepared.request = std::move(request);
  return prepared;
}

PreparedItems prepare_token_score(const TextModel& model, const ReceivedRequest& received,
                                  const RequestRules& rules) {
  TokenScoreRequest request =
      parse_token_score_request(parse_request_body(received.body), rules.terms);
  apply_rules(model, rules, received, request.common);
  GenerateOptions sharing;
  sharing.cache_salt = request.common.cache_salt;
  PreparedItems prepared{.request = {}, .items = {}};
  for (size_t i = 0; i < request.input.prompts.size(); ++i) {
    GenerateRequest one = make_score_request(model, request.input.prompts[i],
                                             {.num_top_logprobs = request.top_logprobs,
                                              .add_special_tokens = request.add_special_tokens,
                                              .lora = request.common.lora,
                                              .prompt_name = request.input.name("input", i),
                                              .cancelled = {}});
    one.priority = request.common.priority;
    one.prefix.scope = prefix_scope(model, sharing);
    model.engine.check(one);
    PreparedItem& item = prepared.items.emplace_back();
    item.prompt_tokens = static_cast<int64_t>(one.prompt.size());
    prepared.response_bytes += item.prompt_tokens * (1 + request.top_logprobs) * kJsonLogprobBytes;
    check_response_size(rules, prepared.response_bytes, "input");
    item.requests.push_back(std::move(one));
  }
  prepared.request = std::move(request);
  return prepared;
}

namespace {

// A request of the engine for each item.
template <class Request>
PreparedItems prepare_pairs(const TextModel& model, Request request,
                            const std::vector<TextPair>& pairs, const PairOptions& options) {
  PreparedItems prepared{.request = {}, .items = {}};
  prepared.pairs.emplace(model, pairs, options);
  for (GenerateRequest& one : prepared.pairs->take_requests()) {
    model.engine.check(one);
    PreparedItem& item = prepared.items.emplace_back();
    item.prompt_tokens = static_cast<int64_t>(one.prompt.size());
    item.requests.push_back(std::move(one));
  }
  prepared.request = std::move(request);
  return prepared;
}

PairOptions pair_options(const CommonFields& common,
                         const std::optional<std::string>& instruction) {
  return {.instruction = instruction,
          .lora = common.lora,
          .cache_salt = common.cache_salt,
          .priority = common.priority};
}

}  // namespace

PreparedItems prepare_pair_score(const TextModel& model, const ReceivedRequest& received,
                                 const RequestRules& rules) {
  PairScoreRequest request =
      parse_pair_score_request(parse_request_body(received.body), rules.terms);
  apply_rules(model, rules, received, request.common);
  const PairOptions options = pair_options(request.common, request.instruction);
  const std::vector<TextPair> pairs = text_pairs(request);
  return prepare_pairs(model, std::move(request), pairs, options);
}

PreparedItems prepare_rerank(const TextModel& model, const ReceivedRequest& received,
                             const RequestRules& rules) {
  RerankRequest request = parse_rerank_request(parse_request_body(received.body), rules.terms);
  apply_rules(model, rules, received, request.common);
  PairOptions options = pair_options(request.common, request.instruction);
  options.uses_prompts = true;
  const std::vector<TextPair> pairs = text_pairs(request);
  return prepare_pairs(model, std::move(request), pairs, options);
}

PreparedItems prepare_embedding(const TextModel& model, const ReceivedRequest& received,
                                const RequestRules& rules) {
  EmbeddingRequest request =
      parse_embedding_request(parse_request_body(received.body), rules.terms);
  apply_rules(model, rules, received, request.common);
  PreparedItems prepared{.request = {}, .items = {}};
  prepared.items.reserve(request.input.prompts.size());
  for (size_t i = 0; i < request.input.prompts.size(); ++i) {
    GenerateRequest one =
        make_embed_request(model, request.input.prompts[i], embedding_options(request, i, {}));
    model.engine.check(one);
    PreparedItem& item = prepared.items.emplace_back();
    item.prompt_tokens = static_cast<int64_t>(one.prompt.size());
    item.requests.push_back(std::move(one));
  }
  const int64_t width = request.dimensions.value_or(model.embedding->width);
  prepared.response_bytes =
      std::ssize(prepared.items) * embedding_json_bytes(request.format, width);
  check_response_size(rules, prepared.response_bytes, "input");
  prepared.request = std::move(request);
  return prepared;
}

}  // namespace paceline
