// StreamedChoice is one choice of a streamed answer: what of it hasn't been told yet.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "paceline/results.h"
#include "protocol/request_fields.h"
#include "protocol/response.h"
#include "protocol/token_names.h"
#include "tools/turn_event.h"

namespace paceline {

// What a stream's choices have in common; all of it outlives them.
struct StreamTerms {
  const GenerateOptions& options;
  const GenerationFields& fields;
  const TokenNames& names;
  // Set: log-probabilities are streamed, with this many alternatives.
  std::optional<int32_t> num_top_logprobs;
  std::span<const Logprob> prompt_logprobs;  // of the prompt's first choice, which has them
};

class StreamedChoice {
 public:
  explicit StreamedChoice(int64_t index) : index_(index) {}

  // The prompt, in front of all else, and its tokens if log-probabilities are told.
  void echo(std::string text, std::vector<ReportedToken> tokens);
  // The text that a token released, and whether the token was drafted; and what that says of the
  // turn, where it is taken apart.
  void add(std::string_view text, bool is_accepted, std::span<const TurnEvent> events = {});

  // Calls `write` with the chunk that says all there is to say of `completion`, if there is
  // something, and tokens enough for a chunk. A token is told with the piece that has the last of
  // its text, and nothing is told behind an ending.
  template <class Write>
  void emit(const Completion& completion, bool is_finished, const StreamTerms& terms,
            const Write& write) {
    if (has_ended_) return;
    ResponseChunk chunk{.index = index_};
    ResponseChoice ending;
    if (!take(completion, is_finished, terms, chunk, ending)) return;
    if (!completion.turn) return write(chunk);
    // One chunk for each delta; what else there is to say comes with the last one.
    std::vector<TurnDelta> deltas = take_deltas();
    const bool has_more = is_finished || chunk.logprobs || chunk.token_ids;
    if (deltas.empty() && has_more) deltas.emplace_back();
    for (size_t i = 0; i < deltas.size(); ++i) {
      ResponseChunk one{.index = index_, .cached_tokens = chunk.cached_tokens};
      if (i + 1 == deltas.size()) one = chunk;
      one.turn = &deltas[i];
      write(one);
    }
  }

 private:
  struct Run {
    size_t bytes = 0;
    bool is_accepted = false;
  };

  std::vector<TextPiece> pieces() const;  // of piece_
  bool take(const Completion& completion, bool is_finished, const StreamTerms& terms,
            ResponseChunk& chunk, ResponseChoice& ending);
  void take_tokens(const Completion& completion, bool is_finished, const StreamTerms& terms,
                   ResponseChunk& chunk);
  void count_named(const std::vector<ReportedToken>& tokens);
  std::vector<TurnDelta> take_deltas();

  int64_t index_;
  std::string pending_;            // text that hasn't been sent
  std::vector<Run> runs_;          // of pending_: what tokens it came from
  std::vector<TurnEvent> events_;  // of pending_
  std::string piece_;              // the text of the last chunk
  std::vector<ReportedToken> echoed_;
  bool has_ended_ = false;
  size_t num_ids_ = 0;   // told
  size_t num_told_ = 0;  // tokens there were when the last chunk was told

  // Of log-probabilities.
  std::string text_;        // all of it, the echo too
  size_t num_named_ = 0;    // tokens told
  size_t named_bytes_ = 0;  // their text's
  int64_t named_characters_ = 0;
};

}  // namespace paceline
