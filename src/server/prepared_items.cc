// What is done before the engine for classifications, scores, embeddings and decisions.

#include "engine/engine.h"
#include "protocol/request_options.h"
#include "server/item_response.h"
#include "text/embedding.h"
#include "text/make_request.h"

namespace paceline {
namespace {

int64_t response_bytes(const ClassificationRequest& request, int64_t vocab_size) {
  const int64_t num_logits = request.with_logits ? vocab_size : 0;
  return std::ssize(request.input.prompts) * kJsonNumberBytes *
         (num_logits + std::ssize(request.labels));
}

// What the engine computes for each input of a request, into `prepared`.
struct PreparingItems {
  const TextModel& model;
  const RequestRules& rules;
  PreparedItems& prepared;

  void operator()(const ClassificationRequest& request) const {
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
  }

  void operator()(const TokenScoreRequest& request) const {
    GenerateOptions sharing;
    sharing.cache_salt = request.common.cache_salt;
    for (size_t i = 0; i < request.input.prompts.size(); ++i) {
      GenerateRequest one = make_score_request(model, request.input.prompts[i],
                                               {.num_top_logprobs = request.top_logprobs,
                                                .add_special_tokens = request.add_special_tokens,
                                                .lora = request.common.lora,
                                                .prompt_name = request.input.name("input", i)});
      one.priority = request.common.priority;
      one.prefix.scope = prefix_scope(model, sharing);
      const auto num_tokens = std::ssize(one.prompt);
      add(std::move(one));
      prepared.response_bytes += num_tokens * (1 + request.top_logprobs) * kJsonLogprobBytes;
      check_response_size(rules, prepared.response_bytes, "input");
    }
  }

  void operator()(const PairScoreRequest& request) const {
    add_pairs(text_pairs(request), pair_options(request.common, request.instruction));
  }

  void operator()(const RerankRequest& request) const {
    PairOptions options = pair_options(request.common, request.instruction);
    options.uses_prompts = true;
    add_pairs(text_pairs(request), options);
  }

  void operator()(const DecisionRequest& request) const {
    constexpr int64_t kNameBytes = 128;  // of an answer's members
    PreparedItem& item = prepared.items.emplace_back();
    item.decisions.emplace(model, request.input, request.questions, decide_options(request));
    item.prompt_tokens = item.decisions->prompt_tokens();
    for (const DecisionQuestion& question : request.questions) {
      prepared.response_bytes += kNameBytes + std::ssize(question.options) * kJsonLogprobBytes;
    }
    check_response_size(rules, prepared.response_bytes, "questions");
  }

  void operator()(const EmbeddingRequest& request) const {
    for (size_t i = 0; i < request.input.prompts.size(); ++i) {
      add(make_embed_request(model, request.input.prompts[i], embedding_options(request, i, {})));
    }
    const int64_t width = request.dimensions.value_or(model.embedding->width);
    prepared.response_bytes =
        std::ssize(prepared.items) * embedding_json_bytes(request.format, width);
    check_response_size(rules, prepared.response_bytes, "input");
  }

 private:
  static PairOptions pair_options(const CommonFields& common,
                                  const std::optional<std::string>& instruction) {
    return {.instruction = instruction,
            .lora = common.lora,
            .cache_salt = common.cache_salt,
            .priority = common.priority};
  }

  void add_pairs(const std::vector<TextPair>& pairs, const PairOptions& options) const {
    prepared.pairs.emplace(model, pairs, options);
    for (GenerateRequest& one : prepared.pairs->take_requests()) add(std::move(one));
  }

  // A request of the engine for one more input.
  void add(GenerateRequest one) const {
    model.engine.check(one);
    PreparedItem& item = prepared.items.emplace_back();
    item.prompt_tokens = std::ssize(one.prompt);
    item.requests.push_back(std::move(one));
  }
};

}  // namespace

PreparedItems prepare_items(const TextModel& model, ItemCall call, const RequestRules& rules) {
  PreparedItems prepared{.call = std::move(call)};
  std::visit(PreparingItems{model, rules, prepared}, prepared.call.request);
  return prepared;
}

}  // namespace paceline
