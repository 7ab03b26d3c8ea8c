// The engine's calls that draw nothing, or once: score and classify.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "engine/engine.h"

namespace paceline {

void Engine::score_outputs(const Sequence& sequence, int64_t first_position, int64_t count,
                           int32_t num_top_logprobs, std::vector<ScoredToken>& out) {
  const int64_t num_scored = std::min(count, sequence.num_tokens() - 1 - first_position);
  for (int64_t begin = 0; begin < num_scored; begin += runner_.max_logits_rows()) {
    const int64_t rows = std::min(runner_.max_logits_rows(), num_scored - begin);
    const Tensor logits = runner_.logits(begin, rows);
    for (int64_t i = 0; i < rows; ++i) {
      const auto position = static_cast<size_t>(first_position + begin + i + 1);
      const std::span<const float> row(logits.row<float>(i), static_cast<size_t>(vocab_size()));
      Sample sample = sampler_.score(row, sequence.tokens[position], num_top_logprobs);
      if (sample.status != SampleStatus::ok) {
        throw Error(ErrorCode::numerical,
                    fmt::format("logits for position {} hold a NaN", position));
      }
      out.push_back({.id = sample.id,
                     .logprob = sample.logprob,
                     .top_logprobs = std::move(sample.top_logprobs)});
    }
  }
}

std::vector<ScoredToken> Engine::score(std::span<const TokenId> ids, int32_t num_top_logprobs,
                                       const std::stop_token& cancelled,
                                       std::string_view prompt_name) {
  check_prompt(ids, prompt_name);
  Sequence sequence(cache_, {ids.begin(), ids.end()});
  std::vector<ScoredToken> scored = {{.id = ids[0], .logprob = {}, .top_logprobs = {}}};
  while (sequence.num_uncomputed() > 0) {
    throw_if_cancelled(cancelled);
    const int64_t first_position = sequence.num_computed;
    const int64_t count = advance(sequence, Outputs::all);
    score_outputs(sequence, first_position, count, num_top_logprobs, scored);
  }
  return scored;
}

// The rest of a label after its first token, teacher-forced behind the prompt and taken back again.
double Engine::label_logprob(Sequence& sequence, std::span<const TokenId> label,
                             float first_logprob) {
  const int64_t prompt_length = sequence.num_tokens();
  double total = static_cast<double>(first_logprob);
  if (label.size() == 1) return total;
  sequence.tokens.insert(sequence.tokens.end(), label.begin(), label.end());
  std::vector<ScoredToken> scored;
  // The label's last token is scored, not computed.
  while (sequence.num_uncomputed() > 1) {
    const int64_t first_position = sequence.num_computed;
    const int64_t count = std::min(sequence.num_uncomputed() - 1, limits_.max_batched_tokens);
    batch_.clear();
    add_slice(cache_, sequence, count, Outputs::all, batch_);
    runner_.run(batch_);
    sequence.num_computed += count;
    score_outputs(sequence, first_position, count, 0, scored);
  }
  for (const ScoredToken& token : scored) total += static_cast<double>(*token.logprob);
  sequence.tokens.resize(static_cast<size_t>(prompt_length));
  sequence.num_computed = prompt_length;
  cache_.truncate(sequence.blocks, prompt_length);
  return total;
}

void Engine::check_classify(const ClassifyRequest& request) const {
  check_prompt(request.prompt, request.prompt_name);
  check_sampling_options(request.sampling, vocab_size());
  size_t longest_label = 0;
  for (size_t i = 0; i < request.labels.size(); ++i) {
    const std::string field = fmt::format("labels[{}]", i);
    if (request.labels[i].empty()) {
      throw Error(ErrorCode::invalid, field + ": empty, expected at least one token");
    }
    check_token_ids(request.labels[i], vocab_size(), field);
    longest_label = std::max(longest_label, request.labels[i].size());
  }
  // A label's last token is scored, not computed.
  const auto computed = static_cast<int64_t>(request.prompt.size() + longest_label) - 1;
  if (longest_label > 1 && computed > limits_.max_model_len) {
    throw Error(ErrorCode::invalid,
                fmt::format("{} and its longest label: {} tokens, the context (--max-model-len) "
                            "holds {}",
                            request.prompt_name, computed + 1, limits_.max_model_len));
  }
}

TokenId Engine::draw_once(const Sequence& sequence, std::span<const float> logits,
                          const SamplingOptions& sampling) {
  TokenHistory history;
  history.add_prompt(sequence.tokens);
  const Sample sample = sampler_.draw(logits, sampling, history, sequence.num_tokens(), false);
  if (sample.status != SampleStatus::ok) {
    throw Error(ErrorCode::numerical, "the logits hold a NaN or leave nothing to draw from");
  }
  return sample.id;
}

std::vector<float> Engine::label_logprobs(Sequence& sequence, std::span<const float> first_row,
                                          const ClassifyRequest& request,
                                          const std::stop_token& cancelled) {
  std::vector<float> logprobs;
  for (const auto& label : request.labels) {
    throw_if_cancelled(cancelled);
    const Sample first = sampler_.score(first_row, label[0], 0);
    if (first.status != SampleStatus::ok) {
      throw Error(ErrorCode::numerical, "the logits hold a NaN");
    }
    logprobs.push_back(static_cast<float>(label_logprob(sequence, label, first.logprob)));
  }
  return logprobs;
}

ClassifyResult Engine::classify(const ClassifyRequest& request, const std::stop_token& cancelled) {
  check_classify(request);
  const bool one_token_each = std::all_of(request.labels.begin(), request.labels.end(),
                                          [](const auto& label) { return label.size() == 1; });
  Sequence sequence(cache_, request.prompt);
  prefill(sequence, cancelled);
  ClassifyResult result{.labels_are_logits = one_token_each && !request.labels.empty()};
  std::vector<float> row;
  if (request.want_token || request.want_logits || !one_token_each) {
    const auto logits = logits_row(0);
    row.assign(logits.begin(), logits.end());
  }
  if (request.want_token) result.token = draw_once(sequence, row, request.sampling);
  if (result.labels_are_logits) {
    std::vector<int32_t> columns;
    for (const auto& label : request.labels) columns.push_back(label[0]);
    const Tensor logits = runner_.column_logits(0, 1, columns);
    const auto* first = logits.elements<float>();
    result.label_logprobs.assign(first, first + columns.size());
  } else {
    result.label_logprobs = label_logprobs(sequence, row, request, cancelled);
  }
  if (request.want_logits) result.logits = std::move(row);
  return result;
}

}  // namespace paceline
