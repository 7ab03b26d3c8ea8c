// PairScoring scores pairs of texts: by the model's head for one label, by the similarity of their
// embeddings, or by the probability of "yes" as Qwen3-Reranker does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/request.h"
#include "paceline/options.h"
#include "text/text_model.h"

namespace paceline {

class PairScoring {
 public:
  // `model` must outlive it. Throws Error unsupported when the model scores no pairs, and what
  // making the requests throws.
  PairScoring(const TextModel& model, std::span<const TextPair> pairs, const PairOptions& options);

  // The engine's requests: one for each pair, or one for each different text that is embedded.
  std::vector<GenerateRequest> take_requests() { return std::move(requests_); }

  // `results[i]` is what request i made: PromptOutputs::pooled or column_logits. In the order of
  // the pairs.
  std::vector<float> scores(const std::vector<std::vector<float>>& results) const;

 private:
  enum class Method : uint8_t { label, similarity, yes_or_no };

  Method method_of(const TextModel& model) const;
  void add_classified(const TextPair& pair, const PairOptions& options);
  void add_embedded(std::span<const TextPair> pairs, const PairOptions& options);
  void add_judged(std::span<const TextPair> pairs, const PairOptions& options);

  const TextModel& model_;
  Method method_ = Method::similarity;
  std::vector<GenerateRequest> requests_;
  std::vector<std::pair<size_t, size_t>> embedded_;  // requests of each pair's texts
};

}  // namespace paceline
