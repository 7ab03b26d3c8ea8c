#include "server/generation_response.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/time_source.h"
#include "engine/queue_limit.h"
#include "protocol/completed_responses.h"
#include "protocol/token_names.h"
#include "server/server_errors.h"
#include "server/worker_call.h"

namespace paceline {
namespace {

std::optional<int32_t> num_alternatives_of(const GenerationRequest& request) {
  return std::visit([](const auto& one) { return one.num_alternatives(); }, request);
}

size_t json_bytes(const TokenEvent& event) {
  size_t num_tokens = event.top_logprobs.size();
  if (event.prompt) {
    for (const ScoredToken& token : event.prompt->scored) {
      num_tokens += 1 + token.top_logprobs.size();
    }
  }
  return static_cast<size_t>(kJsonLogprobBytes) * num_tokens;
}

// A response on its way to the worker that formats it.
struct CompleteResponse {
  PreparedGeneration prepared;
  ResponseHead head;
};

ApiError too_much_to_stream(size_t num_bytes, size_t most_bytes) {
  return {.reason = ErrorReason::invalid_value,
          .message = fmt::format("stream: the prompt's log-probabilities take about {} MiB, the "
                                 "limit of a stream is {}; send the request without stream",
                                 num_bytes >> 20, most_bytes >> 20),
          .field = "stream"};
}

std::string whole_json(CompleteResponse& response, const TokenNames& names) {
  std::vector<CompletedPart> parts;
  for (PreparedPart& part : response.prepared.parts) {
    CompletedPart& completed = parts.emplace_back();
    for (CompletionBuilder& choice : part.choices) {
      completed.choices.push_back(choice.take());
      completed.choices.back().prompt_logprobs = completed.choices.front().prompt_logprobs;
    }
  }
  const auto* chat = std::get_if<ChatRequest>(&response.prepared.request);
  const auto* completion = std::get_if<CompletionRequest>(&response.prepared.request);
  return response.prepared.writer->whole(
      chat != nullptr ? completed_response(*chat, parts[0], names, std::move(response.head))
                      : completed_response(*completion, parts, names, std::move(response.head)));
}

}  // namespace

GenerationResponse::GenerationResponse(CallPtr call, PreparedGeneration prepared)
    : call_(std::move(call)),
      prepared_(std::move(prepared)),
      n_(std::ssize(prepared_.parts.front().choices)) {
  const ServerOptions& options = call_->context().options;
  const std::string& lora = std::visit(
      [](const auto& r) -> const std::string& { return r.common.lora; }, prepared_.request);
  head_ = new_head(prepared_.writer->id_prefix(), lora.empty() ? call_->model()->names[0] : lora);
  head_.system_fingerprint = call_->model()->fingerprint;
  head_.reasoning_field = options.reasoning_field;
  head_.warnings = warnings_of(std::get_if<ChatRequest>(&prepared_.request),
                               prepared_.parts.front().choices.front().completion());
  num_unfinished_ = prepared_.parts.size() * static_cast<size_t>(n());
  for (const PreparedPart& part : prepared_.parts) {
    prompt_tokens_ += std::ssize(part.request.prompt);
  }
  echoed_.assign(prepared_.parts.size(), false);
  token_at_.resize(num_unfinished_);
}

const GenerationFields& GenerationResponse::fields() const {
  return std::visit([](const auto& one) -> const GenerationFields& { return one.generation; },
                    prepared_.request);
}

void GenerationResponse::start() {
  if (is_streamed()) {
    // A prompt's log-probabilities are one event, formatted on the I/O thread; they raise the
    // limit of unread bytes.
    constexpr size_t kMostBytes = 16 << 20;
    const auto num_bytes = static_cast<size_t>(prepared_.prompt_logprob_bytes);
    if (num_bytes > kMostBytes) return fail(too_much_to_stream(num_bytes, kMostBytes));
    piece_bytes_ = 2 * num_bytes;
  }
  if (!call_->reserve_response(prepared_.prompt_logprob_bytes)) return fail(no_response_memory());
  EngineLink& link = call_->model()->link;
  for (size_t part = 0; part < prepared_.parts.size(); ++part) {
    const auto max_tokens = static_cast<double>(prepared_.parts[part].request.max_tokens);
    const auto id = link.submit(shared_from_this(), {.part = part, .index = 0},
                                std::move(prepared_.parts[part].request));
    if (!id) return fail(queue_full());
    ids_.push_back(*id);
    call_->metrics().params_max_tokens.observe(max_tokens);
  }
  is_accepted_ = true;
  ServerMetrics& metrics = call_->metrics();
  ++metrics.accepted;
  metrics.params_n.observe(static_cast<double>(n()));
  if (const auto* chat = std::get_if<ChatRequest>(&prepared_.request)) {
    metrics.omitted_parts += std::ssize(chat->warnings);
  }
  call_->exchange().on_close([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->client_gone();
  });
  if (is_streamed()) begin_stream();
}

void GenerationResponse::client_gone() {
  if (is_over_) return call_->end_stream(kClientClosedRequest, "client_gone");
  is_over_ = true;
  ++call_->metrics().cancelled;
  cancel_parts();
  call_->end_stream(kClientClosedRequest, "client_gone");
}

void GenerationResponse::cancel_parts() {
  for (const RequestId id : ids_) call_->model()->link.cancel(id);
}

void GenerationResponse::fail(const ApiError& error) {
  if (is_over_) return;
  is_over_ = true;
  cancel_parts();
  ServerContext& context = call_->context();
  if (is_accepted_) ++call_->metrics().failed;
  if (!has_begun_) return call_->fail(error);
  // A stream that breaks off ends with an error event and without [DONE].
  context.errors.count(error);
  prepared_.writer->fail(error, output_);
  send();
  call_->exchange().end();
  const ErrorKind& kind = openai_kind(error.reason);
  call_->end_stream(kind.status, std::string(kind.code));
}

void GenerationResponse::take(ResponsePart which, TokenEvent& event) {
  PreparedPart& part = prepared_.parts[which.part];
  const auto k = static_cast<size_t>(event.choice);
  CompletionBuilder& choice = part.choices[k];
  const bool has_prompt = event.prompt != nullptr;
  pending_bytes_ += json_bytes(event);
  const std::string_view text = choice.add(event);
  pending_bytes_ += text.size();
  if (event.token) count_token(static_cast<size_t>(first_choice(which.part)) + k);
  if (event.ending) {
    call_->metrics().count_choice(*event.ending, k == 0);
    --num_unfinished_;
    const bool is_cancelled = event.ending->finish.reason == FinishReason::cancelled;
    if (choice.error() && !error_) error_ = api_error(*choice.error());
    if (is_cancelled && !is_over_ && !error_) error_ = ended_by_server();
  }
  if (is_over_ || choices_.empty()) return;
  if (has_prompt && !echoed_[which.part]) echo_prompt(which.part);
  const size_t index = static_cast<size_t>(first_choice(which.part)) + k;
  choices_[index].add(text, event.was_drafted, choice.turn_events());
  // A chunk of its own for each token, however many of them came together.
  if (!error_ && keeps_up()) emit_choice(index);
}

// Otherwise the tokens that come meanwhile are told in one chunk: it is shorter than one for each.
bool GenerationResponse::keeps_up() const {
  return !call_->model()->link.lags() && call_->exchange().buffered_bytes() + output_.size() <=
                                             call_->context().options.soft_buffer_bytes;
}

void GenerationResponse::count_token(size_t choice) {
  ServerMetrics& metrics = call_->metrics();
  ++metrics.generation_tokens;
  const auto now = call_->model()->link.woken_at();
  auto& last = token_at_[choice];
  if (last.time_since_epoch().count() > 0) {
    metrics.count_token_gap(std::chrono::duration<double>(now - last).count());
  }
  last = now;
}

void GenerationResponse::flush() {
  if (is_over_) return;
  if (error_) return fail(*error_);
  if (choices_.empty()) {
    if (num_unfinished_ == 0) respond_whole();
    return;
  }
  HttpExchange& exchange = call_->exchange();
  const ServerOptions& options = call_->context().options;
  if (exchange.buffered_bytes() + pending_bytes_ > options.hard_buffer_bytes + piece_bytes_) {
    return cut_off();
  }
  const bool is_done = num_unfinished_ == 0;
  if (exchange.buffered_bytes() > options.soft_buffer_bytes && !is_done) return;
  emit_chunks();
  if (is_done) return finish_stream();
  send();
}

void GenerationResponse::cut_off() {
  is_over_ = true;
  ++call_->metrics().slow_readers;
  ++call_->metrics().cancelled;
  cancel_parts();
  call_->exchange().abort();
  call_->end_stream(kClientClosedRequest, "slow_reader");
}

void GenerationResponse::emit_chunks() {
  for (size_t i = 0; i < choices_.size(); ++i) emit_choice(i);
  pending_bytes_ = 0;
}

// Tells what there is to say of a choice.
void GenerationResponse::emit_choice(size_t index) {
  const auto& options = std::visit(
      [](const auto& one) -> const GenerateOptions& { return one.options; }, prepared_.request);
  StreamTerms terms{.options = options,
                    .fields = fields(),
                    .names = call_->model()->token_names,
                    .num_top_logprobs = num_alternatives_of(prepared_.request)};
  const auto per_part = static_cast<size_t>(n());
  const PreparedPart& part = prepared_.parts[index / per_part];
  const CompletionBuilder& builder = part.choices[index % per_part];
  terms.prompt_logprobs = part.choices[0].completion().prompt_logprobs;
  choices_[index].emit(builder.completion(), builder.finished(), terms,
                       [this](ResponseChunk& chunk) { write_chunk(std::move(chunk)); });
}

// A client that lags has enough to read while others are computed, in its places and with its
// permit.
void GenerationResponse::watch_reader() {
  const bool lags = reader_pace_.lags(call_->exchange().progress());
  if (lags == std::exchange(is_deferred_, lags)) return;
  call_->hold_permit(!lags);
  EngineLink& link = call_->model()->link;
  for (const RequestId id : ids_) lags ? link.defer(id) : link.resume(id);
}

void GenerationResponse::tick() {
  if (is_over_ || choices_.empty()) return;
  if (has_begun_) watch_reader();
  const auto silent = Clock::now() - last_written_;
  // An empty queue says at once, even during a long step, that the request is being computed.
  const bool may_ping =
      has_begun_ || has_started || call_->model()->link.engine().queue().num_sequences() == 0;
  if (silent < (may_ping ? call_->context().options.ping_time : longest_silence())) return;
  if (call_->exchange().buffered_bytes() > 0) return;  // the client has something to read
  prepared_.writer->ping(output_);
  send();
}

// A request that waits too long for its turn gets a status, so its stream doesn't begin while it
// waits. A proxy waits for about a minute.
std::chrono::milliseconds GenerationResponse::longest_silence() const {
  constexpr std::chrono::milliseconds kMost{45'000};
  constexpr std::chrono::milliseconds kMargin{2'000};
  const ServerOptions& options = call_->context().options;
  return std::max(options.ping_time, std::min(options.queue_timeout + kMargin, kMost));
}

void GenerationResponse::begin_stream() {
  const size_t num_choices = num_unfinished_;
  choices_.reserve(num_choices);
  for (size_t i = 0; i < num_choices; ++i) choices_.emplace_back(static_cast<int64_t>(i));
  last_written_ = Clock::now();
  prepared_.writer->begin({.head = head_, .usage = usage_so_far(), .num_choices = num_choices},
                          output_);
  const auto* request = std::get_if<CompletionRequest>(&prepared_.request);
  if (request == nullptr || !request->echo || request->logprobs) return;
  for (size_t part = 0; part < prepared_.parts.size(); ++part) echo_prompt(part);
}

void GenerationResponse::echo_prompt(size_t part) {
  echoed_[part] = true;
  const auto* request = std::get_if<CompletionRequest>(&prepared_.request);
  if (request == nullptr || !request->echo) return;
  const TokenNames& names = call_->model()->token_names;
  const PromptText& prompt = request->prompt.prompts[part];
  const Completion& first = prepared_.parts[part].choices[0].completion();
  std::string text;
  if (first.text) text = echoed_text(prompt, names);
  for (int64_t k = 0; k < n(); ++k) {
    std::vector<ReportedToken> tokens;
    if (request->logprobs) {
      tokens = report_echo(first.prompt_logprobs, *request->logprobs, prompt,
                           request->options.add_special_tokens, names);
    }
    choices_[static_cast<size_t>(first_choice(part) + k)].echo(text, std::move(tokens));
  }
}

void GenerationResponse::write_chunk(ResponseChunk chunk) {
  if (fields().streaming.continuous_usage) chunk.usage = usage_so_far();
  prepared_.writer->chunk(chunk, output_);
}

void GenerationResponse::send() {
  if (output_.empty()) return;
  if (!std::exchange(has_begun_, true)) call_->begin_events();
  call_->exchange().write(output_);
  output_.clear();
  last_written_ = Clock::now();
}

ResponseUsage GenerationResponse::usage() {
  ResponseUsage usage;
  for (PreparedPart& part : prepared_.parts) {
    std::vector<Completion> counted;
    for (const CompletionBuilder& choice : part.choices) {
      counted.emplace_back().usage = choice.completion().usage;
    }
    add_usage(counted, usage);
  }
  const auto* chat = std::get_if<ChatRequest>(&prepared_.request);
  usage.has_prediction = chat != nullptr && !chat->options.prediction.empty();
  return usage;
}

ResponseUsage GenerationResponse::usage_so_far() {
  if (num_unfinished_ == 0) return usage();
  ResponseUsage usage{.prompt_tokens = prompt_tokens_};
  for (const PreparedPart& part : prepared_.parts) {
    for (const CompletionBuilder& choice : part.choices) {
      const Completion& one = choice.completion();
      usage.completion_tokens +=
          choice.finished() ? one.usage.completion_tokens : std::ssize(one.token_ids);
    }
  }
  return usage;
}

void GenerationResponse::finish_stream() {
  is_over_ = true;
  ++call_->metrics().completed;
  call_->set_usage(usage());
  prepared_.writer->end(usage(), output_);
  send();
  call_->exchange().end();
  constexpr int kOk = 200;
  call_->end_stream(kOk);
}

void GenerationResponse::respond_whole() {
  constexpr size_t kQuick = 64 << 10;
  is_over_ = true;
  call_->set_usage(usage());
  const auto whole = std::make_shared<CompleteResponse>(
      CompleteResponse{.prepared = std::move(prepared_), .head = std::move(head_)});
  if (pending_bytes_ < kQuick) {
    call_->respond_json(whole_json(*whole, call_->model()->token_names));
    ++call_->metrics().completed;
    return;
  }
  // On a worker: the I/O thread serves others meanwhile.
  respond_from_worker(
      call_, [whole, &names = call_->model()->token_names] { return whole_json(*whole, names); });
}

}  // namespace paceline
