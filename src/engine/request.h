// GenerateRequest is the engine's input: token ids and settings.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "paceline/options.h"
#include "sampling/sampling_options.h"
#include "state/prefix_scope.h"

namespace paceline {

class Constraint;
struct LoadedAdapter;

using TokenId = int32_t;
using RequestId = int64_t;

// Whether special tokens are part of the text, as they are spelled, or only counted.
enum class SpecialTokens : uint8_t { hidden, shown };

// How a request uses blocks of earlier requests, and caches its own.
struct PrefixUse {
  PrefixScope scope;  // who may share; the engine sets its adapter and its stretched length
  bool read = true;
  // keep: findable until evicted; while_held: findable only while held.
  enum class Write : uint8_t { none, while_held, keep } write = Write::keep;
  // Its blocks stay held when it ends, until Engine::release or until nothing else fits.
  bool hold = false;
  // Beginnings of the prompt that others are known to have, in tokens: where layers have states,
  // these are saved there. None: all of a prefix that is held, else shortly before the prompt ends.
  std::vector<int64_t> shared_lengths = {};
};

// Which of a text's states, after the last norm, become its one vector; the names are those of
// sentence-transformers.
enum class Pooling : uint8_t {
  last,           // of the last token
  first,          // of the first token (cls)
  mean,           // of all
  weighted_mean,  // of all, the state of position p with the weight p + 1
  mean_sqrt,      // their sum by the square root of their number
  max,            // the largest of each element
};

struct GenerateRequest {
  std::vector<TokenId> prompt;
  std::string prompt_name = "prompt_ids";  // in messages
  int64_t max_tokens = 256;                // 0: nothing is drawn
  int32_t n = 1;                           // choices; choice k draws with seed + k
  SamplingOptions sampling;                // its mask is made of the next two
  std::vector<TokenId> allowed_token_ids;  // only these are drawn; none: any
  // No token is drawn that completes one of them.
  std::vector<std::vector<TokenId>> banned_sequences;
  std::vector<TokenId> not_first;  // tokens that aren't drawn as the first one
  // What the output's text must be; null: anything. Its end tokens (the next two) come where the
  // text may end, and nowhere else.
  std::shared_ptr<Constraint> constraint;
  std::string constraint_name = "constraint";  // in messages
  std::vector<TokenId> eos_tokens;             // end the output, not part of it
  std::vector<TokenId> stop_token_ids;         // likewise, and reported as the reason
  std::vector<std::string> stop_strings;
  bool includes_stop = false;  // the text ends behind the stop string, not before it
  int64_t min_tokens = 0;      // until then eos_tokens and stop_token_ids can't be drawn
  bool ignore_eos = false;
  SpecialTokens specials = SpecialTokens::hidden;
  bool want_logprobs = false;
  bool speculation = true;          // false: nothing is drafted for it
  std::vector<TokenId> prediction;  // a text that the output will mostly repeat: its draft
  // Log-probabilities of the prompt's tokens from this position on; the first token has none.
  std::optional<int64_t> score_from;
  // Of the prompt's last row: the logits of these columns, and the whole row.
  std::vector<TokenId> columns;
  bool want_row = false;
  // The prompt's pooled states, and nothing else: max_tokens is 0.
  std::optional<Pooling> pooling;
  int64_t pool_from = 0;  // states of earlier positions aren't pooled
  // Where the second of a pair of texts begins, for models that tell types of tokens.
  std::optional<int64_t> second_text = {};

  // Changes the model for this request; null: the model itself. Prefixes are shared only between
  // requests of the same adapter.
  std::shared_ptr<const LoadedAdapter> adapter;
  int32_t priority = 0;  // class; smaller is served first
  PrefixUse prefix;
  std::stop_token cancelled;  // takes effect within one step

  // Whether the logits of the prompt's last row are read.
  bool needs_last_row() const { return max_tokens > 0 || want_row || !columns.empty(); }
  // Whether its blocks are all that it computes.
  bool only_holds() const {
    return prefix.hold && max_tokens == 0 && !needs_last_row() && !pooling && !score_from;
  }
  // Whether rows of the prompt may come from the prefix cache. Pooled rows may not.
  bool may_skip_rows() const { return !pooling || *pooling == Pooling::last; }
};

// Throws Error invalid "FIELD[i]: ..." for an id outside [0, vocab_size).
void check_token_ids(std::span<const TokenId> ids, int64_t vocab_size, std::string_view field);

constexpr int32_t kMaxChoices = 128;

constexpr int64_t kMaxSpeculativeTokens = 64;
// Drafted from a prediction, in a step, where nothing else is drafted.
constexpr int64_t kPredictedTokens = 8;

struct SpeculationLimits {
  int64_t num_tokens = 0;  // drafted for a sequence in a step, at most; 0: nothing is drafted
  SpecAccept accept = SpecAccept::coupled;
  // Drafts less, down to nothing, where a row costs more time than it saves.
  bool adapts = true;
};

struct EngineLimits {
  int64_t max_model_len = 2048;         // prompt and output together
  int64_t max_batched_tokens = 512;     // rows of one step; longer prompts are computed in chunks
  int64_t max_chunk = 0;                // rows of one sequence in a step; 0: max_batched_tokens
  int64_t max_num_seqs = 256;           // sequences computed at once
  int64_t max_adapters = 0;             // their different adapters; 0: no request may have one
  int64_t max_queued = 1024;            // sequences that wait, or more are refused
  int64_t max_queued_tokens = 0;        // of their prompts; 0: four times what the cache holds
  int64_t max_tokens_per_sequence = 0;  // of the pool; 0: all of it
  bool prefix_cache = true;
  // The model attends in both directions: requests ask for pooled states only. A prompt is computed
  // whole, whatever max_chunk is, and never cached.
  bool bidirectional = false;
  bool tells_types = false;  // tokens of the second of a pair of texts are of another type
  // The model has a head for labels of whole texts: likewise, pooled states only.
  bool classifies = false;
  // False: the model's files have no head for tokens. Likewise.
  bool has_head = true;
  // False: a backend draws the tokens, and can't keep outputs to a grammar.
  bool constrains = true;
  // The factor by which prefill may slow down a step of decoding sequences; 0: unlimited, which is
  // best for throughput.
  double max_step_slowdown = 0;
  double free_step_seconds = 0;  // a step with prefill may take this long in any case
  // Steps of decoding sequences that a runner with a decode loop takes without a plan in between;
  // 1: each step is planned.
  int64_t max_run_steps = 64;
  SpeculationLimits speculation;
  // Tokens are drawn where the runner has the logits, if it can; else from logits that it hands
  // out, with the same bits.
  bool draws_rows = true;
};

// Throws Error invalid naming the field at fault, the value found and what was expected; clamps
// max_tokens to what the context and a sequence's share leave.
void check_request(GenerateRequest& request, const EngineLimits& limits, int64_t vocab_size);

}  // namespace paceline
