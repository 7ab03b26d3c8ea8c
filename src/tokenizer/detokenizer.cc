#include <vector>

#include "base/utf8.h"
#include "tokenizer/tokenizer_state.h"

namespace paceline {

struct IncrementalDetokenizer::State {
  State(const BpeTokenizer& from, DecodeOptions with)
      : tokenizer(from), options(with), joiner(from.decoder(), from.table()) {
    begin_text();
  }

  void begin_text() {
    streams.clear();
    for (const auto& step : tokenizer.decoder().text) streams.push_back(step->begin_text());
  }

  // Passes `text` through the text steps from `first` on.
  std::string through(std::string text, size_t first) {
    for (size_t i = first; i < streams.size(); ++i) {
      std::string changed;
      streams[i]->push(text, changed);
      text = std::move(changed);
    }
    return text;
  }

  const BpeTokenizer& tokenizer;
  DecodeOptions options;
  TokenJoiner joiner;
  std::string pending = {};  // joined bytes that begin a character
  std::vector<std::unique_ptr<TextStepStream>> streams;
};

IncrementalDetokenizer::IncrementalDetokenizer(const Tokenizer& tokenizer, DecodeOptions options)
    : state_(std::make_unique<State>(tokenizer.state_->bpe, options)) {}
IncrementalDetokenizer::IncrementalDetokenizer(IncrementalDetokenizer&&) noexcept = default;
IncrementalDetokenizer& IncrementalDetokenizer::operator=(IncrementalDetokenizer&&) noexcept =
    default;
IncrementalDetokenizer::~IncrementalDetokenizer() = default;

std::string IncrementalDetokenizer::push(TokenId id) {
  State& state = *state_;
  const BpeTokenizer& tokenizer = state.tokenizer;
  tokenizer.check_id(id);
  if (!tokenizer.table().exists(id)) return {};
  if (state.options.skip_special && tokenizer.is_special(id)) return {};
  std::string& pending = state.pending;
  if (state.joiner.needs_text()) {
    state.joiner.push_text(tokenizer.decoded_text(id), pending);
  } else {
    state.joiner.push_id(id, pending);
  }
  const size_t complete = pending.size() - incomplete_utf8_suffix(pending);
  std::string text = replace_invalid_utf8(std::string_view(pending).substr(0, complete));
  pending.erase(0, complete);
  return state.through(std::move(text), 0);
}

std::string IncrementalDetokenizer::finish() {
  State& state = *state_;
  state.joiner.finish(state.pending);
  std::string text = state.through(replace_invalid_utf8(state.pending), 0);
  for (size_t i = 0; i < state.streams.size(); ++i) {
    std::string rest;
    state.streams[i]->finish(rest);
    text += state.through(std::move(rest), i + 1);
  }
  state.pending.clear();
  state.begin_text();
  return text;
}

}  // namespace paceline
