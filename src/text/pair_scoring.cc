#include "text/pair_scoring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "base/error.h"
#include "engine/engine.h"
#include "text/embedding.h"
#include "text/make_request.h"

namespace paceline {
namespace {

// The prompt of Qwen3-Reranker's model card.
constexpr std::string_view kJudgement =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    "the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
    "<|im_start|>user\n";
constexpr std::string_view kAnswer = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
constexpr std::string_view kUsualInstruction =
    "Given a web search query, retrieve relevant passages that answer the query";

// The token that is all of this text; nothing: there is none.
std::optional<TokenId> one_token(const Tokenizer& tokenizer, std::string_view text) {
  const std::vector<TokenId> ids = tokenizer.encode(text);
  return ids.size() == 1 ? std::optional(ids[0]) : std::nullopt;
}

bool can_judge(const TextModel& model) {
  if (model.tokenizer == nullptr) return false;
  for (const std::string_view text : {"<|im_start|>", "<|im_end|>", "yes", "no"}) {
    if (!one_token(*model.tokenizer, text)) return false;
  }
  return true;
}

void append(std::vector<TokenId>& ids, const std::vector<TokenId>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

float cosine(const std::vector<float>& a, const std::vector<float>& b) {
  const double lengths = std::sqrt(dot(a, a)) * std::sqrt(dot(b, b));
  return static_cast<float>(dot(a, b) / std::max(lengths, 1e-12));
}

// As sentence-transformers' pairwise functions.
float similarity(Similarity how, const std::vector<float>& a, const std::vector<float>& b) {
  if (how == Similarity::cosine) return cosine(a, b);
  if (how == Similarity::dot) return static_cast<float>(dot(a, b));
  double distance = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double apart = double{a[i]} - double{b[i]};
    distance += how == Similarity::manhattan ? std::abs(apart) : apart * apart;
  }
  return static_cast<float>(how == Similarity::manhattan ? -distance : -std::sqrt(distance));
}

float sigmoid(float logit) { return static_cast<float>(1.0 / (1.0 + std::exp(-double{logit}))); }

std::optional<std::string> known_prompt(const TextModel& model, std::string_view name) {
  for (const auto& [known, text] : model.embedding->prompts) {
    if (known == name) return known;
  }
  return std::nullopt;
}

}  // namespace

PairScoring::Method PairScoring::method_of(const TextModel& model) const {
  if (model.labels) {
    if (!model.labels->pair_problem.empty()) {
      throw Error(ErrorCode::unsupported, model.labels->pair_problem);
    }
    if (model.labels->names.size() == 1) return Method::label;
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: has {} labels, a score of a pair needs one", model.name,
                            model.labels->names.size()));
  }
  if (model.embedding && model.embedding->has_files) return Method::similarity;
  if (can_judge(model)) return Method::yes_or_no;
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: this model can't score pairs; a model needs a head for one "
                          "label (...ForSequenceClassification), sentence-transformers files, or "
                          "the tokens yes, no and <|im_start|> of Qwen3-Reranker",
                          model.name));
}

PairScoring::PairScoring(const TextModel& model, std::span<const TextPair> pairs,
                         const PairOptions& options)
    : model_(model), method_(method_of(model)) {
  if (method_ == Method::similarity) {
    add_embedded(pairs, options);
  } else if (method_ == Method::yes_or_no) {
    add_judged(pairs, options);
  } else {
    for (const TextPair& pair : pairs) add_classified(pair, options);
  }
  for (GenerateRequest& request : requests_) {
    request.adapter = find_adapter(model, options.lora);
    request.priority = options.priority;
    request.cancelled = options.cancelled;
    request.prefix.scope = prefix_scope(model, options.cache_salt);
  }
}

// A pair's tokens are those of one text after those of the other, each with its special tokens; an
// encoder's are as the tokenizer joins two texts.
void PairScoring::add_classified(const TextPair& pair, const PairOptions& /*options*/) {
  if (model_.labels->pooling != Pooling::last) {
    std::optional<PairLimit> limit = model_.labels->pair_limit;
    if (limit)
      limit->max_tokens = std::min(limit->max_tokens, model_.engine.limits().max_model_len);
    const PairEncoding encoded =
        encode_text_pair(model_, pair.first, pair.second, pair.name, limit);
    GenerateRequest request{.prompt = encoded.ids,
                            .prompt_name = pair.name,
                            .max_tokens = 0,
                            .pooling = model_.labels->pooling};
    const auto second = std::ranges::find(encoded.type_ids, 1);
    if (second != encoded.type_ids.end() && model_.engine.limits().tells_types) {
      request.second_text = second - encoded.type_ids.begin();
    }
    requests_.push_back(std::move(request));
    return;
  }
  GenerateRequest request{
      .prompt = encode_prompt(model_, pair.first, pair.name, {.add_special = true}),
      .prompt_name = pair.name,
      .max_tokens = 0,
      .pooling = Pooling::last};
  append(request.prompt, encode_prompt(model_, pair.second, pair.name, {.add_special = true}));
  requests_.push_back(std::move(request));
}

void PairScoring::add_embedded(std::span<const TextPair> pairs, const PairOptions& options) {
  std::map<std::pair<std::string, bool>, size_t> known;  // by the text and whether it is a query
  const auto request_of = [&](const std::string& text, bool is_query, const std::string& name) {
    const auto [at, is_new] =
        known.emplace(std::pair(text, is_query && options.uses_prompts), requests_.size());
    if (!is_new) return at->second;
    EmbedOptions embed;
    if (options.uses_prompts)
      embed.named_prompt = known_prompt(model_, is_query ? "query" : "document");
    embed.prompt_name = name;
    requests_.push_back(make_embed_request(model_, text, embed));
    return at->second;
  };
  for (const TextPair& pair : pairs) {
    const size_t first = request_of(pair.first, true, "query");
    embedded_.emplace_back(first, request_of(pair.second, false, pair.name));
  }
}

// Texts can't write special tokens: only the template's own are read as such.
void PairScoring::add_judged(std::span<const TextPair> pairs, const PairOptions& options) {
  const Tokenizer& tokenizer = *model_.tokenizer;
  const std::vector<TokenId> begin = tokenizer.encode(kJudgement), end = tokenizer.encode(kAnswer);
  for (const TextPair& pair : pairs) {
    const std::string text = fmt::format(
        "<Instruct>: {}\n<Query>: {}\n<Document>: {}",
        options.instruction.value_or(std::string(kUsualInstruction)), pair.first, pair.second);
    GenerateRequest request{.prompt = begin,
                            .prompt_name = pair.name,
                            .max_tokens = 0,
                            .columns = {*one_token(tokenizer, "no"), *one_token(tokenizer, "yes")}};
    append(request.prompt, tokenizer.encode(text, {.specials_as_text = true}));
    append(request.prompt, end);
    requests_.push_back(std::move(request));
  }
}

std::vector<float> PairScoring::scores(const std::vector<std::vector<float>>& results) const {
  std::vector<float> scores;
  if (method_ == Method::similarity) {
    for (const auto& [first, second] : embedded_) {
      scores.push_back(similarity(model_.embedding->similarity,
                                  finish_embedding(model_, results[first], {}),
                                  finish_embedding(model_, results[second], {})));
    }
    return scores;
  }
  for (const std::vector<float>& result : results) {
    if (method_ == Method::yes_or_no) {
      scores.push_back(sigmoid(result[1] - result[0]));
    } else {
      scores.push_back(model_.labels->pairs_are_logits ? result[0]
                                                       : model_.labels->scores(result)[0]);
    }
  }
  return scores;
}

}  // namespace paceline
