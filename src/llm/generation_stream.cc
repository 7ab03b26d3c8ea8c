#include "base/error.h"
#include "llm/llm_state.h"

namespace paceline {

void GenerationStream::State::advance() {
  piece = {};
  if (llm->model == nullptr) throw Error(ErrorCode::invalid, "the model was closed");
  while (!builder.finished() && piece.empty()) {
    if (next_event == events.size()) {
      next_event = 0;
      channel->wait(events);
    }
    piece = builder.add(events[next_event++]);
    if (!builder.finished()) continue;
    llm->record(builder.stats());
    if (builder.error()) throw Error(builder.error()->code, builder.error()->message);
  }
}

// A reader that stops cancels the generation.
GenerationStream::State::~State() {
  if (!builder.finished() && llm->model != nullptr) llm->model->engine->cancel(id);
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

std::string_view GenerationStream::Iterator::operator*() const { return stream_->state_->piece; }

GenerationStream::Iterator& GenerationStream::Iterator::operator++() {
  stream_->state_->advance();
  if (stream_->state_->piece.empty()) stream_ = nullptr;
  return *this;
}

const Completion& GenerationStream::completion() {
  while (!state_->builder.finished()) state_->advance();
  return state_->builder.completion();
}

}  // namespace paceline
