#include "base/error.h"
#include "llm/llm_state.h"

namespace paceline {
namespace {

void append_logprob(const LoadedModel& model, const TokenEvent& event, Completion& completion) {
  completion.logprobs.push_back({.id = event.token->id,
                                 .token = token_string(model, event.token->id),
                                 .logprob = event.token->logprob,
                                 .top = describe_top(model, event.top_logprobs)});
}

void apply_finish(const GenerateRequest& request, const Finish& finish, Completion& completion) {
  completion.finish_reason = finish_reason_name(finish.reason);
  if (finish.stop_token) completion.stop_reason = *finish.stop_token;
  if (finish.stop_string) {
    completion.stop_reason = request.stop_strings[static_cast<size_t>(*finish.stop_string)];
  }
}

}  // namespace

void GenerationStream::State::advance() {
  const LoadedModel& model = *llm->model;
  piece.clear();
  while (!finished && piece.empty()) {
    const TokenEvent event = generation->next();
    if (event.token) {
      completion.token_ids.push_back(event.token->id);
      if (generation->request().want_logprobs) append_logprob(model, event, completion);
      if (model.tokenizer && event.token->id < model.tokenizer->vocab_size() &&
          !model.tokenizer->is_special(event.token->id)) {
        text.push(model.tokenizer->token_bytes(event.token->id));
      }
    }
    piece = event.finish ? text.finish(event.releasable_bytes) : text.take(event.releasable_bytes);
    if (completion.text) *completion.text += piece;
    if (!event.finish) continue;
    finished = true;
    apply_finish(generation->request(), *event.finish, completion);
    completion.prompt_logprobs = describe(model, generation->prompt_logprobs());
    completion.usage = {.prompt_tokens = generation->stats().prompt_tokens,
                        .completion_tokens = generation->stats().output_tokens};
    llm->record(generation->stats());
  }
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
  while (!state_->finished) state_->advance();
  return state_->completion;
}

}  // namespace paceline
