#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "engine/generation.h"

namespace paceline {

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
  check_token_ids(ids, vocab_size(), field);
  const auto length = static_cast<int64_t>(ids.size());
  if (length > limits_.max_model_len) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: {} tokens, the context (--max-model-len) holds {}", field, length,
                            limits_.max_model_len));
  }
}

std::unique_ptr<Generation> Engine::start(GenerateRequest request) {
  check_prompt(request.prompt, request.prompt_name);
  check_sampling_options(request.sampling, vocab_size());
  check_token_ids(request.stop_token_ids, vocab_size(), "stop_token_ids");
  if (request.max_tokens < 0) {
    throw Error(ErrorCode::invalid,
                fmt::format("max_tokens: {}, expected 0 or more", request.max_tokens));
  }
  const auto prompt_length = static_cast<int64_t>(request.prompt.size());
  if (request.max_tokens > 0 && prompt_length >= limits_.max_model_len) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: {} tokens leave no room for output in the context of {} "
                            "(--max-model-len)",
                            request.prompt_name, prompt_length, limits_.max_model_len));
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

}  // namespace paceline
