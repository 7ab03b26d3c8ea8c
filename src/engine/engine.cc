#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace paceline {
namespace {

void throw_if_cancelled(const std::stop_token& cancelled) {
  if (cancelled.stop_requested()) throw Error(ErrorCode::cancelled, "cancelled by the caller");
}

void check_ids(std::span<const TokenId> ids, int64_t vocab_size, std::string_view field) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size) {
      throw Error(ErrorCode::invalid, fmt::format("{}[{}]: token id {} is not in [0, {})", field, i,
                                                  ids[i], vocab_size));
    }
  }
}

}  // namespace

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::cancelled:
      return "cancelled";
  }
  return "stop";
}

Engine::Engine(Runner& runner, Backend& backend, Memory& memory, KvCache& cache,
               EngineLimits limits, TokenBytes token_bytes)
    : runner_(runner),
      cache_(cache),
      limits_(limits),
      token_bytes_(std::move(token_bytes)),
      sampler_(backend, memory, runner.vocab_size()) {
  token_bytes_.resize(static_cast<size_t>(runner.vocab_size()));
}

void Engine::check_prompt(std::span<const TokenId> ids, std::string_view field) const {
  if (ids.empty()) {
    throw Error(ErrorCode::invalid, fmt::format("{}: empty, expected at least one token", field));
  }
  check_ids(ids, vocab_size(), field);
  const auto length = static_cast<int64_t>(ids.size());
  if (length > limits_.max_model_len) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: {} tokens, the context (--max-model-len) holds {}", field, length,
                            limits_.max_model_len));
  }
}

std::unique_ptr<Generation> Engine::start(GenerateRequest request) {
  check_prompt(request.prompt, "prompt");
  check_sampling_options(request.sampling, vocab_size());
  check_ids(request.stop_token_ids, vocab_size(), "stop_token_ids");
  if (request.max_tokens < 0) {
    throw Error(ErrorCode::invalid,
                fmt::format("max_tokens: {}, expected 0 or more", request.max_tokens));
  }
  const auto prompt_length = static_cast<int64_t>(request.prompt.size());
  if (request.max_tokens > 0 && prompt_length >= limits_.max_model_len) {
    throw Error(ErrorCode::invalid,
                fmt::format("prompt: {} tokens leave no room for output in the context of {} "
                            "(--max-model-len)",
                            prompt_length, limits_.max_model_len));
  }
  request.max_tokens = std::min(request.max_tokens, limits_.max_model_len - prompt_length);
  for (size_t i = 0; i < request.stop_strings.size(); ++i) {
    if (request.stop_strings[i].empty()) {
      throw Error(ErrorCode::invalid, fmt::format("stop[{}]: empty, expected some text", i));
    }
  }
  return std::unique_ptr<Generation>(new Generation(*this, std::move(request)));
}

int64_t Engine::advance(Sequence& sequence, Outputs outputs) {
  const int64_t count = std::min(sequence.num_uncomputed(), limits_.max_batched_tokens);
  const bool is_last = count == sequence.num_uncomputed();
  if (outputs == Outputs::last && !is_last) outputs = Outputs::none;
  batch_.clear();
  add_slice(cache_, sequence, count, outputs, batch_);
  runner_.run(batch_);
  sequence.num_computed += count;
  return count;
}

void Engine::prefill(Sequence& sequence, const std::stop_token& cancelled) {
  while (sequence.num_uncomputed() > 0) {
    throw_if_cancelled(cancelled);
    advance(sequence, Outputs::last);
  }
}

std::span<const float> Engine::logits_row(int64_t output_index) {
  const Tensor logits = runner_.logits(output_index, 1);
  return {logits.elements<float>(), static_cast<size_t>(vocab_size())};
}

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
                                       const std::stop_token& cancelled) {
  check_prompt(ids, "ids");
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

ClassifyResult Engine::classify(const ClassifyRequest& request, const std::stop_token& cancelled) {
  check_prompt(request.prompt, "text");
  check_sampling_options(request.sampling, vocab_size());
  size_t longest_label = 0;
  bool one_token_each = true;
  for (size_t i = 0; i < request.labels.size(); ++i) {
    const std::string field = fmt::format("labels[{}]", i);
    if (request.labels[i].empty()) {
      throw Error(ErrorCode::invalid, field + ": empty, expected at least one token");
    }
    check_ids(request.labels[i], vocab_size(), field);
    longest_label = std::max(longest_label, request.labels[i].size());
    one_token_each = one_token_each && request.labels[i].size() == 1;
  }
  const auto needed = static_cast<int64_t>(request.prompt.size() + longest_label);
  if (longest_label > 1 && needed - 1 > limits_.max_model_len) {
    throw Error(ErrorCode::invalid,
                fmt::format("text and its longest label: {} tokens, the context (--max-model-len) "
                            "holds {}",
                            needed, limits_.max_model_len));
  }

  Sequence sequence(cache_, request.prompt);
  prefill(sequence, cancelled);
  ClassifyResult result{.labels_are_logits = one_token_each && !request.labels.empty()};
  const bool needs_row = request.want_token || request.want_logits || !one_token_each;
  std::vector<float> row;
  if (needs_row) {
    const auto logits = logits_row(0);
    row.assign(logits.begin(), logits.end());
  }
  if (request.want_token) {
    TokenHistory history;
    history.add_prompt(request.prompt);
    const Sample sample =
        sampler_.draw(row, request.sampling, history, sequence.num_tokens(), false);
    if (sample.status != SampleStatus::ok) {
      throw Error(ErrorCode::numerical, "the logits hold a NaN or leave nothing to draw from");
    }
    result.token = sample.id;
  }
  if (result.labels_are_logits) {
    std::vector<int32_t> columns;
    for (const auto& label : request.labels) columns.push_back(label[0]);
    const Tensor logits = runner_.column_logits(0, 1, columns);
    result.label_logprobs.assign(logits.elements<float>(),
                                 logits.elements<float>() + columns.size());
  } else {
    // First all first tokens: computing a label's rest replaces the runner's outputs.
    for (const auto& label : request.labels) {
      const Sample first = sampler_.score(row, label[0], 0);
      if (first.status != SampleStatus::ok) {
        throw Error(ErrorCode::numerical, "the logits hold a NaN");
      }
      result.label_logprobs.push_back(
          static_cast<float>(label_logprob(sequence, label, first.logprob)));
      throw_if_cancelled(cancelled);
    }
  }
  if (request.want_logits) result.logits = std::move(row);
  return result;
}

}  // namespace paceline
