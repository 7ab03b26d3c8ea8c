// Sequence is one choice of one request: its tokens, its blocks and the state of its draws.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/time_source.h"
#include "engine/channel.h"
#include "engine/event.h"
#include "engine/request.h"
#include "engine/sequence_constraint.h"
#include "engine/stop_matcher.h"
#include "sampling/token_history.h"
#include "sampling/token_mask.h"
#include "spec/draft_length.h"
#include "spec/drafter.h"
#include "state/state_cache.h"

namespace paceline {

// The immutable state that all choices of a request share.
struct RequestState {
  RequestState(RequestId request_id, int64_t submitters_tag, GenerateRequest&& asked,
               std::shared_ptr<Channel> answers)
      : id(request_id),
        tag(submitters_tag),
        request(std::move(asked)),
        ends(request.eos_tokens),
        stops(request.stop_strings),
        channel(std::move(answers)) {
    ends.insert(ends.end(), request.stop_token_ids.begin(), request.stop_token_ids.end());
    if (request.allowed_token_ids.empty() && request.banned_sequences.empty()) return;
    request.sampling.mask = std::make_shared<const TokenMask>(
        std::exchange(request.allowed_token_ids, {}), std::exchange(request.banned_sequences, {}));
  }

  RequestId id;
  int64_t tag;
  GenerateRequest request;
  std::vector<TokenId> ends;  // eos_tokens, then stop_token_ids
  StopAutomaton stops;
  std::shared_ptr<Channel> channel;
  Clock::time_point submitted = Clock::now();
};

struct Sequence {
  // The request has passed check_request.
  Sequence(std::shared_ptr<const RequestState> state, int32_t which, StateCache& cache);

  const GenerateRequest& request() const { return shared->request; }
  int64_t num_tokens() const { return static_cast<int64_t>(tokens.size()); }
  int64_t num_output() const { return num_tokens() - prompt_length; }
  // Tokens whose keys and values are needed: the last one's only if its row is read. A prefix that
  // is only held needs those that others can find.
  int64_t num_wanted() const {
    if (num_held) return *num_held;
    const bool wants_last =
        request().needs_last_row() || request().prefix.hold || request().pooling.has_value();
    return wants_last ? num_tokens() : num_tokens() - 1;
  }
  // The first prompt position whose log-probability is still to be found.
  bool is_scored(int64_t position) const {
    return request().score_from.has_value() && position >= next_scored && position < prompt_length;
  }
  // Its class: the request's, or the last one while it is deferred.
  int32_t priority() const {
    return is_deferred ? std::numeric_limits<int32_t>::max() : request().priority;
  }
  bool is_served_before(const Sequence& other) const {
    if (priority() != other.priority()) return priority() < other.priority();
    return arrival_id < other.arrival_id;
  }
  // The first position after `from` whose state is to be found later, a boundary of blocks: every
  // 512 tokens or a little less, and where others are likely to go on otherwise. Its prompt may end
  // before it.
  int64_t next_saved_state(int64_t from, int64_t block_size) const;
  // Biases for the next token: end tokens may not come before min_tokens, others not first.
  void update_bias();
  // The drafted token at `position`; nullptr: there is none.
  const TokenId* drafted_at(int64_t position) const {
    const int64_t index = position - draft_begin;
    return index >= 0 && index < std::ssize(draft.tokens)
               ? &draft.tokens[static_cast<size_t>(index)]
               : nullptr;
  }
  // Whether the token drawn for `position` is the drafted one.
  bool drew_draft(int64_t position) const {
    const TokenId* drafted = drafted_at(position);
    return drafted != nullptr && position < num_tokens() &&
           tokens[static_cast<size_t>(position)] == *drafted;
  }
  // Called with the token that is drawn next. Returns whether it was drafted.
  bool count_draft(TokenId drawn) {
    const TokenId* drafted = draft_is_forced ? nullptr : drafted_at(num_tokens());
    if (drafted == nullptr || *drafted != drawn) return false;
    ++num_accepted;
    ++stats.accepted_tokens;
    return true;
  }
  // Brings the chain of hashes up to the full blocks of the first `length` tokens.
  void extend_hashes(const PrefixIndex& index, int64_t block_size, int64_t length);
  // Gives back the slots behind its computed tokens, reserved for tokens that didn't come.
  void give_back_slots(StateCache& cache);

  std::shared_ptr<const RequestState> shared;
  int32_t choice;
  int64_t arrival_id;         // request id + choice
  int64_t waiting_since = 0;  // step

  std::vector<TokenId> tokens;  // prompt and output
  int64_t prompt_length;
  std::optional<int64_t> num_held;  // of a prefix that is only held: its tokens in whole blocks
  int64_t num_computed = 0;         // whose keys and values are in the cache
  int64_t next_scored = 0;
  std::vector<double> pooled;  // the states so far; empty before the first one
  int32_t num_unforked = 0;    // further choices that begin when the prompt has been computed
  int32_t num_queued = 0;      // choices that it counts for in the queue: itself and those
  SequenceBlocks blocks;
  std::vector<Hash128> hashes;  // of full blocks, as far as they are needed
  PrefixHit hit;                // of the last search

  SamplingOptions sampling;  // the request's, with this choice's seed and update_bias()
  bool keeps_history;        // penalties or the mask want it
  TokenHistory history;
  StopMatcher matcher;
  int64_t text_bytes = 0;
  std::unique_ptr<PromptOutputs> prompt_outputs;
  std::unique_ptr<SequenceConstraint> constraint;  // null: any text will do

  // Of a step's draft. The state begins with the first draft and ends with a preemption.
  std::unique_ptr<DraftState> draft_state;
  Draft draft;
  bool draft_is_forced = false;  // its tokens come whatever the rows say
  int64_t draft_begin = 0;       // position of its first token
  int64_t num_wished = 0;        // tokens to draft in the coming step
  int64_t num_accepted = 0;      // drafted tokens that were drawn in this step
  int64_t num_run_steps = 0;     // steps that it may take without a plan; 0: none
  bool is_ahead = false;         // a run has begun to compute its next row
  int32_t adapter = 0;           // its adapter's number in the coming step; 0: none
  AcceptanceRate acceptance;
  bool speculates;

  GenerationStats stats;
  Clock::time_point started;  // first step that computed some of it
  Clock::time_point first_token;
  bool has_started = false;
  bool is_deferred = false;
  bool finished = false;  // leaves the batch at the end of the step
};

}  // namespace paceline
