#include "text/classify_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/request_error.h"
#include "engine/engine.h"
#include "text/describe.h"
#include "text/generation_options.h"
#include "text/label_tokens.h"
#include "text/make_request.h"

namespace paceline {
namespace {

// The softmax of the labels, in their order.
std::vector<float> normalised(const std::vector<float>& logprobs) {
  const float largest = *std::max_element(logprobs.begin(), logprobs.end());
  std::vector<double> weights;
  double total = 0;
  for (const float logprob : logprobs) {
    weights.push_back(std::exp(static_cast<double>(logprob) - static_cast<double>(largest)));
    total += weights.back();
  }
  std::vector<float> scores;
  for (const double weight : weights) scores.push_back(static_cast<float>(weight / total));
  return scores;
}

void check_labels(const std::vector<std::vector<TokenId>>& labels, int64_t vocab_size) {
  std::map<std::vector<TokenId>, size_t> indices;
  for (size_t i = 0; i < labels.size(); ++i) {
    const std::string field = fmt::format("labels[{}]", i);
    if (labels[i].empty()) {
      throw invalid_field(field, "empty, expected at least one token");
    }
    check_token_ids(labels[i], vocab_size, field);
    const auto [first, is_new] = indices.emplace(labels[i], i);
    if (is_new) continue;
    throw invalid_field(
        field,
        fmt::format("the same tokens as labels[{}], expected labels that differ", first->second));
  }
}

// After a prompt of token ids, a label is encoded as written.
std::vector<std::vector<TokenId>> encode_labels(const TextModel& model, const Prompt& prompt,
                                                const std::vector<std::string>& labels) {
  const auto* text = std::get_if<std::string>(&prompt);
  std::vector<std::vector<TokenId>> encoded;
  for (size_t i = 0; i < labels.size(); ++i) {
    encoded.push_back(text == nullptr
                          ? encode_prompt(model, labels[i], fmt::format("labels[{}]", i), {})
                          : label_tokens(*model.tokenizer, *text, labels[i]));
  }
  check_labels(encoded, model.engine.vocab_size());
  return encoded;
}

}  // namespace

ClassifyJob::ClassifyJob(const TextModel& model, const Prompt& prompt,
                         const ClassifyOptions& options)
    : model_(model),
      options_(options),
      sampling_(sampling_options(complete_options(model, options.sampling))),
      prompt_name_(prompt_name(prompt, options.sampling.prompt_name)) {
  prompt_ = encode_prompt(model, prompt, prompt_name_,
                          {.add_special = options.sampling.add_special_tokens});
  if (model.labels) {
    add_own_labels();
    return;
  }
  const auto labels = encode_labels(model, prompt, options.labels);
  const bool one_token_each =
      std::all_of(labels.begin(), labels.end(), [](const auto& one) { return one.size() == 1; });
  label_logprobs_.assign(labels.size(), 0.0f);

  GenerateRequest row = request_for(prompt_);
  row.max_tokens = options.want_token_id ? 1 : 0;
  row.want_row = options.with_logits;
  row.allowed_token_ids = options.sampling.allowed_token_ids;
  row.banned_sequences = banned_sequences(model, options.sampling);
  row.not_first = model.generation.not_first;
  if (one_token_each) {
    for (const auto& label : labels) row.columns.push_back(label[0]);
  } else {
    add_label_requests(labels);
  }
  if (row.needs_last_row()) {
    requests_.push_back(std::move(row));
    label_of_request_.emplace_back();
  }
  for (GenerateRequest& request : requests_) {
    check_request(request, model.engine.limits(), model.engine.vocab_size());
  }
  num_open_ = requests_.size();
}

// The model's head classifies the whole text.
void ClassifyJob::add_own_labels() {
  if (!options_.labels.empty()) {
    throw invalid_field(
        "labels", fmt::format("the model classifies with labels of its own ({}), expected none",
                              fmt::join(model_.labels->names, ", ")));
  }
  GenerateRequest pooled = request_for(prompt_);
  pooled.pooling = model_.labels->pooling;
  check_request(pooled, model_.engine.limits(), model_.engine.vocab_size());
  requests_.push_back(std::move(pooled));
  label_of_request_.emplace_back();
  num_open_ = 1;
}

GenerateRequest ClassifyJob::request_for(std::vector<TokenId> prompt) const {
  GenerateRequest request{.prompt = std::move(prompt),
                          .prompt_name = prompt_name_,
                          .max_tokens = 0,
                          .sampling = sampling_,
                          .ignore_eos = true,
                          .adapter = find_adapter(model_, options_.sampling.lora),
                          .cancelled = options_.sampling.cancelled};
  request.sampling.num_top_logprobs = 0;
  request.prefix = {.scope = prefix_scope(model_, options_.sampling),
                    .read = true,
                    .write = PrefixUse::Write::none};
  return request;
}

void ClassifyJob::add_label_requests(const std::vector<std::vector<TokenId>>& labels) {
  GenerateRequest held = request_for(prompt_);
  // The row of its last token is computed with each label.
  if (held.prompt.size() > 1) held.prompt.pop_back();
  held.prefix.write = PrefixUse::Write::while_held;
  held.prefix.hold = true;
  hold_index_ = 0;
  requests_.push_back(std::move(held));
  label_of_request_.emplace_back();
  for (size_t i = 0; i < labels.size(); ++i) {
    std::vector<TokenId> whole = prompt_;
    whole.insert(whole.end(), labels[i].begin(), labels[i].end());
    GenerateRequest scored = request_for(std::move(whole));
    scored.prompt_name = fmt::format("{} and labels[{}]", prompt_name_, i);
    scored.score_from = static_cast<int64_t>(prompt_.size());
    requests_.push_back(std::move(scored));
    label_of_request_.emplace_back(i);
  }
}

void ClassifyJob::add(size_t request_index, TokenEvent& event) {
  if (event.token) token_ = event.token->id;
  if (event.prompt) {
    if (const auto label = label_of_request_[request_index]) {
      double total = 0;
      for (const ScoredToken& token : event.prompt->scored) {
        total += static_cast<double>(*token.logprob);
      }
      label_logprobs_[*label] = static_cast<float>(total);
    } else {
      if (!event.prompt->column_logits.empty()) {
        label_logprobs_ = std::move(event.prompt->column_logits);
      }
      row_ = std::move(model_.labels ? event.prompt->pooled : event.prompt->row);
    }
  }
  if (!event.ending) return;
  --num_open_;
  if (request_index == 0) cached_tokens_ = event.ending->stats.cached_tokens;
  if (error_) return;
  if (event.ending->error) {
    error_ = event.ending->error;
  } else if (event.ending->finish.reason == FinishReason::cancelled) {
    error_ = ErrorInfo{.code = ErrorCode::cancelled, .message = "cancelled by the caller"};
  }
}

Classification ClassifyJob::with_own_labels(Classification result) const {
  result.labels = model_.labels->names;
  result.scores = model_.labels->scores(row_);
  const auto best = std::max_element(result.scores.begin(), result.scores.end());
  result.label = result.labels[static_cast<size_t>(best - result.scores.begin())];
  return result;
}

Classification ClassifyJob::result() const {
  Classification result;
  result.token_id = token_;
  if (token_) result.token = token_string(model_, *token_);
  result.logits = row_;
  if (model_.labels) return with_own_labels(std::move(result));
  if (options_.labels.empty()) return result;
  for (const float logprob : label_logprobs_) {
    if (std::isnan(logprob)) {
      throw Error(ErrorCode::numerical, "the logits of the labels hold a NaN");
    }
  }
  result.scores = normalised(label_logprobs_);
  const auto best = std::max_element(result.scores.begin(), result.scores.end());
  result.label = options_.labels[static_cast<size_t>(best - result.scores.begin())];
  return result;
}

}  // namespace paceline
