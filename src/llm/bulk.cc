// LLM's calls on many items at once.
#include "base/error.h"
#include "llm/llm_state.h"
#include "llm/request_pool.h"

namespace paceline {
namespace {

// The value of a pool's only request, or its Error.
template <class T>
T only_result(RequestPool& pool) {
  auto done = pool.next();
  PL_CHECK(done.has_value(), "a request that was begun ends");
  if (const auto* error = std::get_if<ErrorInfo>(&done->result)) {
    throw Error(error->code, error->message);
  }
  return std::move(std::get<T>(done->result));
}

// Submits all, then collects: results[i] is the outcome of begin(pool, i).
template <class T, class Begin>
std::vector<ItemResult<T>> run_all(RequestPool& pool, size_t count, const Begin& begin) {
  std::vector<ItemResult<T>> results(count);
  for (size_t i = 0; i < count; ++i) {
    try {
      begin(static_cast<int64_t>(i));
    } catch (const Error& error) {
      results[i] = ErrorInfo{.code = error.code(), .message = error.what()};
    }
  }
  while (auto done = pool.next()) {
    auto& result = results[static_cast<size_t>(done->tag)];
    if (auto* error = std::get_if<ErrorInfo>(&done->result)) {
      result = std::move(*error);
    } else if constexpr (std::is_same_v<T, Completion>) {
      result = std::move(std::get<std::vector<Completion>>(done->result).front());
    } else {
      result = std::move(std::get<T>(done->result));
    }
  }
  return results;
}

}  // namespace

std::vector<ItemResult<Completion>> LLM::batch_generate(std::span<const Request> requests) {
  const Call call(*this);
  RequestPool pool(*call);
  return run_all<Completion>(pool, requests.size(), [&](int64_t i) {
    const Request& request = requests[static_cast<size_t>(i)];
    pool.generate(i, request.prompt, request.options);
  });
}

std::vector<Completion> LLM::generate_choices(const Prompt& prompt, const GenerateOptions& options,
                                              int32_t n) {
  const Call call(*this);
  RequestPool pool(*call);
  pool.generate(0, prompt, options, n);
  return only_result<std::vector<Completion>>(pool);
}

Classification LLM::classify(const Prompt& prompt, const ClassifyOptions& options) {
  const Call call(*this);
  RequestPool pool(*call);
  pool.classify(0, prompt, options);
  return only_result<Classification>(pool);
}

std::vector<ItemResult<Classification>> LLM::classify(std::span<const Prompt> prompts,
                                                      const ClassifyOptions& options) {
  const Call call(*this);
  RequestPool pool(*call);
  return run_all<Classification>(pool, prompts.size(), [&](int64_t i) {
    pool.classify(i, prompts[static_cast<size_t>(i)], options);
  });
}

Embedding LLM::embed(const Prompt& prompt, const EmbedOptions& options) {
  const Call call(*this);
  RequestPool pool(*call);
  pool.embed(0, prompt, options);
  return only_result<Embedding>(pool);
}

std::vector<ItemResult<Embedding>> LLM::embed(std::span<const Prompt> prompts,
                                              const EmbedOptions& options) {
  const Call call(*this);
  RequestPool pool(*call);
  return run_all<Embedding>(pool, prompts.size(), [&](int64_t i) {
    pool.embed(i, prompts[static_cast<size_t>(i)], options);
  });
}

Decisions LLM::decide(const std::string& input, std::span<const DecisionQuestion> questions,
                      const DecideOptions& options) {
  const Call call(*this);
  RequestPool pool(*call);
  pool.decide(0, input, questions, options);
  return only_result<Decisions>(pool);
}

std::vector<ItemResult<Decisions>> LLM::decide(std::span<const std::string> inputs,
                                               std::span<const DecisionQuestion> questions,
                                               const DecideOptions& options) {
  const Call call(*this);
  RequestPool pool(*call);
  return run_all<Decisions>(pool, inputs.size(), [&](int64_t i) {
    pool.decide(i, inputs[static_cast<size_t>(i)], questions, options);
  });
}

PairScores LLM::score_pairs(std::span<const TextPair> pairs, const PairOptions& options) {
  if (pairs.empty()) return {};
  const Call call(*this);
  RequestPool pool(*call);
  pool.score_pairs(0, pairs, options);
  return only_result<PairScores>(pool);
}

std::vector<Logprob> LLM::score(const Prompt& prompt, const ScoreOptions& options) {
  const Call call(*this);
  RequestPool pool(*call);
  pool.score(0, prompt, options);
  return only_result<std::vector<Logprob>>(pool);
}

}  // namespace paceline
