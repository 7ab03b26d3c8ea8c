#include "server/streamed_choice.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "base/utf8.h"
#include "protocol/completed_responses.h"
#include "protocol/token_names.h"

namespace paceline {

void StreamedChoice::add(std::string_view text, bool is_accepted,
                         std::span<const TurnEvent> events) {
  pending_ += text;
  events_.insert(events_.end(), events.begin(), events.end());
  if (text.empty()) return;
  if (runs_.empty() || runs_.back().is_accepted != is_accepted) {
    runs_.push_back({.bytes = 0, .is_accepted = is_accepted});
  }
  runs_.back().bytes += text.size();
}

std::vector<TurnDelta> StreamedChoice::take_deltas() {
  std::vector<TurnDelta> deltas;
  // A delta has texts, or the beginning of a call, or a piece of its arguments.
  const auto texts = [&]() -> TurnDelta& {
    if (deltas.empty() || deltas.back().call_index) deltas.emplace_back();
    return deltas.back();
  };
  for (TurnEvent& event : events_) {
    switch (event.kind) {
      case TurnEvent::Kind::reasoning:
        texts().reasoning += event.text;
        break;
      case TurnEvent::Kind::content:
        texts().content += event.text;
        break;
      case TurnEvent::Kind::call_begun:
        deltas.push_back({.call_index = event.call_index,
                          .begins_call = true,
                          .call_id = std::move(event.id),
                          .call_name = std::move(event.name)});
        break;
      case TurnEvent::Kind::arguments:
        if (deltas.empty() || deltas.back().call_index != event.call_index ||
            deltas.back().begins_call) {
          deltas.push_back({.call_index = event.call_index});
        }
        deltas.back().arguments += event.text;
        break;
      case TurnEvent::Kind::call_ended:
        break;
    }
  }
  events_.clear();
  return deltas;
}

std::vector<TextPiece> StreamedChoice::pieces() const {
  std::vector<TextPiece> pieces;
  size_t begin = 0;
  for (const Run& run : runs_) {
    pieces.push_back({.text = piece_.substr(begin, run.bytes), .is_accepted = run.is_accepted});
    begin += run.bytes;
  }
  return pieces;
}

void StreamedChoice::echo(std::string text, std::vector<ReportedToken> tokens) {
  pending_.insert(0, text);
  if (!text.empty()) runs_.insert(runs_.begin(), {.bytes = text.size(), .is_accepted = false});
  echoed_ = std::move(tokens);
}

bool StreamedChoice::take(const Completion& completion, bool is_finished, const StreamTerms& terms,
                          ResponseChunk& chunk, ResponseChoice& ending) {
  const size_t num_new = completion.token_ids.size() - num_told_;
  const bool has_begun = num_told_ > 0;
  if (has_begun && !is_finished && num_new < static_cast<size_t>(terms.fields.streaming.interval)) {
    return false;
  }
  piece_ = std::exchange(pending_, {});
  chunk.cached_tokens = completion.usage.cached_tokens;
  if (completion.text) chunk.text = piece_;
  const auto is_accepted = [](const Run& run) { return run.is_accepted; };
  if (terms.fields.streaming.include_accepted && !completion.turn &&
      std::any_of(runs_.begin(), runs_.end(), is_accepted)) {
    chunk.pieces = pieces();
  }
  runs_.clear();
  if (terms.num_top_logprobs) take_tokens(completion, is_finished, terms, chunk);
  if (terms.fields.return_token_ids || !completion.text) {
    const auto first = completion.token_ids.begin() + static_cast<ptrdiff_t>(num_ids_);
    chunk.token_ids.emplace(first, completion.token_ids.end());
    num_ids_ = completion.token_ids.size();
  }
  if (is_finished) {
    ending = response_choice(completion, terms.fields, terms.names);
    if (terms.fields.prompt_logprobs && completion.prompt_logprobs.empty()) {
      ending.prompt_logprobs =
          report_prompt(terms.prompt_logprobs, *terms.fields.prompt_logprobs, terms.names);
    }
    chunk.ending = &ending;
    has_ended_ = true;
    return true;
  }
  const bool has_tokens = chunk.logprobs && !chunk.logprobs->empty();
  if (chunk.logprobs && !has_tokens) chunk.logprobs.reset();
  const bool has_ids = chunk.token_ids && !chunk.token_ids->empty();
  if (piece_.empty() && !has_tokens && !has_ids) return false;
  num_told_ = completion.token_ids.size();
  return true;
}

void StreamedChoice::take_tokens(const Completion& completion, bool is_finished,
                                 const StreamTerms& terms, ResponseChunk& chunk) {
  text_ += piece_;
  const std::span<const Logprob> all(completion.logprobs);
  size_t end = num_named_;
  size_t bytes = named_bytes_;
  for (const ReportedToken& token : echoed_) bytes += token.text_bytes;
  while (end < all.size()) {
    bytes += terms.names.bytes_in_response(all[end].id, specials_of(terms.options));
    if (bytes > text_.size() && !is_finished) break;
    ++end;
  }
  std::vector<ReportedToken> tokens = std::exchange(echoed_, {});
  auto drawn = report_output(all.subspan(num_named_, end - num_named_), *terms.num_top_logprobs,
                             terms.names, specials_of(terms.options));
  num_named_ = end;
  std::move(drawn.begin(), drawn.end(), std::back_inserter(tokens));
  chunk.text_offset = named_characters_;
  chunk.named_text = std::string_view(text_).substr(std::min(named_bytes_, text_.size()));
  count_named(tokens);
  chunk.logprobs = std::move(tokens);
}

void StreamedChoice::count_named(const std::vector<ReportedToken>& tokens) {
  for (const ReportedToken& token : tokens) {
    const size_t begin = std::min(named_bytes_, text_.size());
    const size_t size = std::min(token.text_bytes, text_.size() - begin);
    named_characters_ += count_code_points(std::string_view(text_).substr(begin, size));
    named_bytes_ = begin + size;
  }
}

}  // namespace paceline
