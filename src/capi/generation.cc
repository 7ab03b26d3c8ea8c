// Generations and chats: streams, callbacks and batches.
#include "capi/call_status.h"
#include "capi/completion.h"
#include "capi/handles.h"
#include "capi/item_list.h"
#include "capi/requests.h"

namespace paceline::capi {
namespace {

paceline_generation& open(paceline_generation* generation) {
  check_given(generation, "generation");
  return *generation;
}

// Calls back with every piece until the end, or until the caller wants no more.
void stream_to(GenerationStream& stream, paceline_on_piece on_piece, void* user) {
  std::string piece;
  bool is_cancelled = false;
  while (stream.advance() == GenerationStream::Progress::piece) {
    if (is_cancelled) continue;
    piece = stream.piece();
    if (on_piece(piece.c_str(), piece.size(), user) == 0) continue;
    is_cancelled = true;
    stream.cancel();
  }
}

const paceline_completions* list_of(const std::vector<ItemResult<Completion>>& results) {
  return item_list<paceline_completions, paceline_completion>(results, c_completion);
}

}  // namespace
}  // namespace paceline::capi

using namespace paceline;
using namespace paceline::capi;

paceline_status paceline_generate(paceline_model* model, paceline_prompt prompt,
                                  const paceline_generate_options* options,
                                  paceline_generation** generation) {
  return guarded([&] {
    begin_result(generation, "generation");
    LLM& llm = llm_of(model);
    *generation = new paceline_generation(
        llm.generate(prompt_of(prompt), generate_options(options), listener_of(options)));
  });
}

paceline_status paceline_chat(paceline_model* model, const char* messages_json,
                              const paceline_chat_options* chat,
                              const paceline_generate_options* options,
                              paceline_generation** generation) {
  return guarded([&] {
    begin_result(generation, "generation");
    LLM& llm = llm_of(model);
    const auto asked = complete(chat, paceline_chat_options_init, "chat");
    *generation = new paceline_generation(llm.chat(chat_input(messages_json, asked),
                                                   generate_options(options), chat_options(asked),
                                                   listener_of(options)));
  });
}

paceline_status paceline_next_piece(paceline_generation* generation, const char** piece,
                                    size_t* piece_size) {
  return guarded([&] {
    begin_result(piece, "piece");
    if (piece_size != nullptr) *piece_size = 0;
    paceline_generation& from = open(generation);
    if (from.stream.advance() == GenerationStream::Progress::finished) return;
    from.piece = from.stream.piece();
    *piece = from.piece.c_str();
    if (piece_size != nullptr) *piece_size = from.piece.size();
  });
}

paceline_status paceline_poll_piece(paceline_generation* generation, paceline_progress* progress,
                                    const char** piece, size_t* piece_size) {
  return guarded([&] {
    begin_result(piece, "piece");
    check_given(progress, "progress");
    if (piece_size != nullptr) *piece_size = 0;
    paceline_generation& from = open(generation);
    const auto found = from.stream.poll();
    *progress = found == GenerationStream::Progress::piece     ? PACELINE_PIECE
                : found == GenerationStream::Progress::waiting ? PACELINE_WAITING
                                                               : PACELINE_FINISHED;
    if (found != GenerationStream::Progress::piece) return;
    from.piece = from.stream.piece();
    *piece = from.piece.c_str();
    if (piece_size != nullptr) *piece_size = from.piece.size();
  });
}

paceline_status paceline_finish_generation(paceline_generation* generation,
                                           const paceline_completion** completion) {
  return guarded([&] {
    begin_result(completion, "completion");
    paceline_generation& from = open(generation);
    if (!from.completion) {
      const Completion& found = from.stream.completion();
      from.completion.emplace();
      static_cast<paceline_completion&>(*from.completion) =
          c_completion(found, from.completion->store);
    }
    *completion = &*from.completion;
  });
}

void paceline_cancel_generation(paceline_generation* generation) {
  if (generation != nullptr) generation->stream.cancel();
}

void paceline_free_generation(paceline_generation* generation) { delete generation; }

paceline_status paceline_generate_all(paceline_model* model, paceline_prompt prompt,
                                      const paceline_generate_options* options,
                                      paceline_on_piece on_piece, void* user,
                                      const paceline_completions** completions) {
  return guarded([&] {
    begin_result(completions, "completions");
    GenerationStream stream = llm_of(model).generate(prompt_of(prompt), generate_options(options));
    if (on_piece != nullptr) stream_to(stream, on_piece, user);
    *completions = list_of({stream.completion()});
  });
}

paceline_status paceline_batch_generate(paceline_model* model, const paceline_prompt* prompts,
                                        size_t count,
                                        const paceline_generate_options* const* options,
                                        const paceline_completions** completions) {
  return guarded([&] {
    begin_result(completions, "completions");
    LLM& llm = llm_of(model);
    std::vector<LLM::Request> requests;
    for (Prompt& prompt : prompts_of(prompts, count)) {
      const size_t i = requests.size();
      requests.push_back({.prompt = std::move(prompt),
                          .options = generate_options(options == nullptr ? nullptr : options[i])});
    }
    *completions = list_of(llm.batch_generate(requests));
  });
}

void paceline_free_completions(const paceline_completions* completions) { free_owned(completions); }
