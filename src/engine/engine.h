// Engine turns requests of token ids into token ids, one step of the runner at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "engine/runner.h"
#include "engine/sequence.h"
#include "kv/kv_cache.h"
#include "sampling/sampler.h"

namespace paceline {

struct EngineLimits {
  int64_t max_model_len = 2048;      // prompt and output together
  int64_t max_batched_tokens = 512;  // rows of one step; longer prompts are computed in chunks
};

// The bytes each token adds to the output's text (none for special tokens); empty without a
// tokenizer.
using TokenBytes = std::vector<std::string_view>;

class Generation;

struct ClassifyRequest {
  std::vector<TokenId> prompt;
  std::string prompt_name = "prompt_ids";  // in messages
  SamplingOptions sampling;
  std::vector<std::vector<TokenId>> labels;  // token ids of each label, none empty
  bool want_token = true;                    // draw a token (costs the whole head)
  bool want_logits = false;                  // the whole row
};

struct ClassifyResult {
  std::optional<TokenId> token;
  std::vector<float>
      label_logprobs;  // summed over a label's tokens, or raw logits of one-token labels
  bool labels_are_logits = false;  // every label was one token
  std::vector<float> logits;       // [vocab] when asked for
};

// One thread. Everything referred to must outlive it.
class Engine {
 public:
  Engine(Runner& runner, Backend& backend, Memory& memory, KvCache& cache, EngineLimits limits,
         TokenBytes token_bytes);

  // Checks the request (Error invalid names the field at fault) and prepares it; nothing is
  // computed before Generation::next. The engine must outlive it.
  std::unique_ptr<Generation> start(GenerateRequest request);

  // Log-probabilities of every token given those before it; messages call the ids `prompt_name`.
  std::vector<ScoredToken> score(std::span<const TokenId> ids, int32_t num_top_logprobs,
                                 const std::stop_token& cancelled,
                                 std::string_view prompt_name = "prompt_ids");

  // Prefill only; nothing stays in the cache.
  ClassifyResult classify(const ClassifyRequest& request, const std::stop_token& cancelled);

  const KvCache& cache() const { return cache_; }
  const EngineLimits& limits() const { return limits_; }
  int64_t vocab_size() const { return runner_.vocab_size(); }

 private:
  friend class Generation;

  void check_prompt(std::span<const TokenId> ids, std::string_view field) const;
  // Computes up to one step's worth of the sequence; returns how many tokens that were.
  int64_t advance(Sequence& sequence, Outputs outputs);
  // Computes all of it, in chunks; the last token's state is the only output.
  void prefill(Sequence& sequence, const std::stop_token& cancelled);
  void check_classify(const ClassifyRequest& request) const;
  TokenId draw_once(const Sequence& sequence, std::span<const float> logits,
                    const SamplingOptions& sampling);
  std::vector<float> label_logprobs(Sequence& sequence, std::span<const float> first_row,
                                    const ClassifyRequest& request,
                                    const std::stop_token& cancelled);
  double label_logprob(Sequence& sequence, std::span<const TokenId> label, float first_logprob);
  // Appends the log-probabilities of the tokens that follow the last step's `count` outputs.
  void score_outputs(const Sequence& sequence, int64_t first_position, int64_t count,
                     int32_t num_top_logprobs, std::vector<ScoredToken>& out);
  std::span<const float> logits_row(int64_t output_index);

  Runner& runner_;
  KvCache& cache_;
  EngineLimits limits_;
  TokenBytes token_bytes_;
  Sampler sampler_;
  Batch batch_;
};

}  // namespace paceline
