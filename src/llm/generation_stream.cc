#include "base/error.h"
#include "llm/llm_state.h"

namespace paceline {

GenerationStream::Progress GenerationStream::State::advance(bool waits) {
  piece = {};
  const CallGate::Pass pass = llm->enter();
  while (!builder.finished() && piece.empty()) {
    if (next_event == events.size()) {
      next_event = 0;
      if (waits) {
        channel->wait(events);
      } else if (!channel->poll(events)) {
        return Progress::waiting;
      }
    }
    piece = builder.add(events[next_event++]);
    if (!builder.finished()) continue;
    llm->record(builder.stats());
    if (builder.error()) throw Error(builder.error()->code, builder.error()->message);
  }
  return piece.empty() ? Progress::finished : Progress::piece;
}

// A reader that stops cancels the generation.
GenerationStream::State::~State() {
  if (builder.finished()) return;
  if (const CallGate::Pass pass = llm->gate.try_enter()) llm->model->engine->cancel(id);
}

GenerationStream::GenerationStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
GenerationStream::GenerationStream(GenerationStream&&) noexcept = default;
GenerationStream& GenerationStream::operator=(GenerationStream&&) noexcept = default;
GenerationStream::~GenerationStream() = default;

GenerationStream::Iterator GenerationStream::begin() {
  Iterator iterator(this);
  ++iterator;
  return iterator;
}

GenerationStream::Progress GenerationStream::advance() { return state_->advance(true); }
GenerationStream::Progress GenerationStream::poll() { return state_->advance(false); }
std::string_view GenerationStream::piece() const { return state_->piece; }

void GenerationStream::cancel() {
  if (const CallGate::Pass pass = state_->llm->gate.try_enter()) {
    state_->llm->model->engine->cancel(state_->id);
  }
}

std::string_view GenerationStream::Iterator::operator*() const { return stream_->piece(); }

GenerationStream::Iterator& GenerationStream::Iterator::operator++() {
  if (stream_->advance() == Progress::finished) stream_ = nullptr;
  return *this;
}

const Completion& GenerationStream::completion() {
  while (!state_->builder.finished()) advance();
  return state_->builder.completion();
}

}  // namespace paceline
