// GenerationResponse is a pending generation, streamed or sent whole at its end.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/api_call.h"
#include "server/prepared_generation.h"
#include "server/reader_pace.h"
#include "server/streamed_choice.h"

namespace paceline {

class GenerationResponse : public PendingResponse,
                           public std::enable_shared_from_this<GenerationResponse> {
 public:
  GenerationResponse(CallPtr call, PreparedGeneration prepared);

  // The answer of a call in the background, before it starts.
  std::string accept() { return prepared_.writer->accepted(head_); }
  // Submits all parts to the engine; fails when the queue has no room for all of them.
  void start();

  const std::string& id() const override { return head_.id; }
  int64_t first_choice(size_t part) const override { return static_cast<int64_t>(part) * n(); }
  void take(ResponsePart which, TokenEvent& event) override;
  void flush() override;
  void tick() override;
  void fail(const ApiError& error) override;

 private:
  int64_t n() const { return n_; }
  const GenerationFields& fields() const;
  bool is_streamed() const { return fields().streaming.stream; }

  void client_gone();
  void cancel_parts();
  void cut_off();
  void count_token(size_t choice);
  bool keeps_up() const;
  void emit_chunks();
  void emit_choice(size_t index);
  void watch_reader();
  std::chrono::milliseconds longest_silence() const;
  void begin_stream();
  void echo_prompt(size_t part);
  void write_chunk(ResponseChunk chunk);
  void send();
  void finish_stream();
  void respond_whole();
  ResponseUsage usage();
  ResponseUsage usage_so_far();

  CallPtr call_;
  PreparedGeneration prepared_;
  int64_t n_;  // choices of a part; with best_of more than are returned
  int64_t prompt_tokens_ = 0;
  ResponseHead head_;
  std::vector<RequestId> ids_;
  size_t num_unfinished_;
  bool is_accepted_ = false;  // all parts are submitted
  bool is_over_ = false;      // responded, failed, or the client has disconnected
  std::optional<ApiError> error_;
  std::vector<std::chrono::steady_clock::time_point> token_at_;  // per choice, the last one
  size_t pending_bytes_ = 0;  // estimate of what has not been written yet

  // Only used by streams.
  std::vector<StreamedChoice> choices_;
  std::vector<bool> echoed_;  // per part
  std::string output_;        // events that haven't been written
  bool has_begun_ = false;    // the head is written, with the first event or the first ping
  size_t piece_bytes_ = 0;    // upper estimate of the prompt's log-probabilities
  std::chrono::steady_clock::time_point last_written_;
  ReaderPace reader_pace_;
  bool is_deferred_ = false;  // because the client lags
};

}  // namespace paceline
