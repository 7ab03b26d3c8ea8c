#include "engine/sequence.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>

#include "base/state_chunk.h"
#include "sampling/penalties.h"

namespace paceline {
namespace {

constexpr int64_t kOutputReserved = 1024;  // tokens; longer outputs reallocate

bool reads_history(const SamplingOptions& options) {
  return penalises(options) || (options.mask && options.mask->reads_output());
}

constexpr float kNever = -std::numeric_limits<float>::infinity();

// The prompt of a chat that the client has rendered ends with the beginning of the answer, which
// later turns may write otherwise: up to 7 tokens in the templates that were tried.
constexpr int64_t kAnswerBeginning = 8;

// States exist at multiples of it, and so do boundaries of blocks.
int64_t state_unit(int64_t block_size) { return std::lcm(block_size, kStateChunk); }

void forbid(std::span<const TokenId> ids, SamplingOptions& sampling) {
  auto& biases = sampling.logit_bias;
  for (const TokenId id : ids) {
    const auto known = std::find_if(biases.begin(), biases.end(),
                                    [id](const auto& bias) { return bias.first == id; });
    if (known == biases.end()) {
      biases.emplace_back(id, kNever);
    } else {
      known->second = kNever;
    }
  }
}

}  // namespace

Sequence::Sequence(std::shared_ptr<const RequestState> state, int32_t which, StateCache& cache)
    : shared(std::move(state)),
      choice(which),
      arrival_id(shared->id + which),
      tokens(shared->request.prompt),
      prompt_length(static_cast<int64_t>(tokens.size())),
      blocks(cache),
      sampling(shared->request.sampling),
      keeps_history(reads_history(sampling)),
      matcher(shared->stops),
      speculates(shared->request.speculation && shared->request.max_tokens > 1) {
  const GenerateRequest& asked = shared->request;
  const int64_t longest = prompt_length + std::min(asked.max_tokens, kOutputReserved);
  tokens.reserve(static_cast<size_t>(longest));
  hashes.reserve(static_cast<size_t>(longest / cache.block_size()));
  blocks.reserve_tables(longest / cache.block_size() + 1);
  hit.revived.reserve(static_cast<size_t>(cache.num_groups()));
  sampling.seed += static_cast<uint64_t>(which);
  update_bias();
  if (keeps_history) history.add_prompt(tokens);
  if (asked.constraint != nullptr) constraint = std::make_unique<SequenceConstraint>(asked);
  stats.prompt_tokens = prompt_length;
  if (asked.only_holds()) {
    const int64_t unit = cache.has_states() ? state_unit(cache.block_size()) : cache.block_size();
    num_held = prompt_length / unit * unit;
  }
  if (which > 0) {
    next_scored = prompt_length;
    return;
  }
  num_unforked = asked.n - 1;
  num_queued = asked.n;
  next_scored = std::max<int64_t>(asked.score_from.value_or(prompt_length), 1);
  if (!asked.score_from && asked.columns.empty() && !asked.want_row && !asked.pooling) return;
  prompt_outputs = std::make_unique<PromptOutputs>();
  if (asked.score_from == 0) {
    prompt_outputs->scored.push_back({.id = tokens[0], .logprob = {}, .top_logprobs = {}});
  }
}

int64_t Sequence::next_saved_state(int64_t from, int64_t block_size) const {
  constexpr int64_t kSavedTokens = 512;
  const PrefixUse& prefix = request().prefix;
  const int64_t unit = state_unit(block_size);
  int64_t next = std::numeric_limits<int64_t>::max();
  const auto consider = [&](int64_t length) {
    const int64_t position = length / unit * unit;
    if (position > from) next = std::min(next, position);
  };
  if (prefix.write == PrefixUse::Write::keep) {
    const int64_t apart = std::max(unit, kSavedTokens / unit * unit);
    next = (from / apart + 1) * apart;
  }
  for (const int64_t length : prefix.shared_lengths) consider(length);
  if (prefix.shared_lengths.empty()) {
    consider(prefix.hold ? prompt_length : prompt_length - kAnswerBeginning);
  }
  return next;
}

void Sequence::update_bias() {
  const GenerateRequest& asked = request();
  sampling.logit_bias = asked.sampling.logit_bias;
  if (stats.output_tokens == 0) forbid(asked.not_first, sampling);
  if (stats.output_tokens >= asked.min_tokens) return;
  forbid(shared->ends, sampling);
}

void Sequence::extend_hashes(const PrefixIndex& index, int64_t block_size, int64_t length) {
  const int64_t num_full = length / block_size;
  while (static_cast<int64_t>(hashes.size()) < num_full) {
    const auto begin = static_cast<int64_t>(hashes.size()) * block_size;
    const Hash128 parent = hashes.empty() ? index.root(request().prefix.scope) : hashes.back();
    hashes.push_back(index.extend(
        parent,
        std::span(tokens).subspan(static_cast<size_t>(begin), static_cast<size_t>(block_size))));
  }
}

void Sequence::give_back_slots(StateCache& cache) {
  cache.truncate(blocks, num_computed);
  cache.release_outside_window(blocks, num_computed);
}

}  // namespace paceline
