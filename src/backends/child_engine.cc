#include "backends/child_engine.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "backends/child_request.h"
#include "base/error.h"
#include "base/json_writer.h"
#include "engine/engine_snapshot.h"
#include "engine/step_record.h"

namespace paceline {
namespace {

using std::chrono::milliseconds;

// A step waits so long for the child, and reads so many of its messages.
constexpr milliseconds kPatience{100};
constexpr int kMostMessages = 256;

EngineLimits child_limits(EngineLimits limits, const ChildFacts& facts) {
  limits.max_num_seqs = facts.max_concurrent;
  limits.max_adapters = 0;
  limits.prefix_cache = false;
  limits.constrains = false;
  limits.speculation = {};
  return limits;
}

int64_t most_queued_tokens(const EngineLimits& limits) {
  constexpr int64_t kContexts = 256;
  if (limits.max_queued_tokens > 0) return limits.max_queued_tokens;
  return limits.max_model_len > std::numeric_limits<int64_t>::max() / kContexts
             ? std::numeric_limits<int64_t>::max()
             : kContexts * limits.max_model_len;
}

int open_wake() {
  const int descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (descriptor >= 0) return descriptor;
  throw Error(ErrorCode::exhausted, fmt::format("eventfd: {}", std::strerror(errno)));
}

void drain(int descriptor) {
  uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(descriptor, &count, sizeof(count));
}

bool is_before(const std::unique_ptr<ChildSequence>& a, const std::unique_ptr<ChildSequence>& b) {
  return a->is_served_before(*b);
}

FinishReason finish_reason(const JsonCursor& done) {
  const std::string& reason = done.string();
  if (reason == "stop") return FinishReason::stop;
  if (reason == "length") return FinishReason::length;
  done.mismatch("stop or length: the request wasn't cancelled");
}

SequenceSnapshot snapshot_of(const ChildSequence& sequence, bool is_running) {
  const ChildRequest& shared = sequence.shared();
  const auto age = seconds_of(Clock::now() - shared.submitted);
  return {.sequence = sequence.arrival_id(),
          .tag = shared.tag,
          .choice = sequence.choice(),
          .is_running = is_running,
          .is_deferred = sequence.is_deferred,
          .adapter = {},
          .prompt_tokens = sequence.stats().prompt_tokens,
          .output_tokens = sequence.stats().output_tokens,
          .max_tokens = shared.request.max_tokens,
          .queue_seconds = is_running ? sequence.stats().queue_seconds : age,
          .age_seconds = age};
}

}  // namespace

ChildEngine::ChildEngine(Options options, std::unique_ptr<ModelChild> loaded,
                         TokenTexts token_texts)
    : options_(std::move(options)),
      token_texts_(std::move(token_texts)),
      facts_(loaded->facts()),
      queue_(options_.limits.max_queued, most_queued_tokens(options_.limits)),
      wake_(open_wake()),
      child_(std::move(loaded)) {
  options_.limits = child_limits(options_.limits, facts_);
}

ChildEngine::~ChildEngine() {
  end_all();
  ::close(wake_);
}

void ChildEngine::check(GenerateRequest& request) const {
  check_child_request(request, facts_, options_.child.backend);
  check_request(request, options_.limits, options_.vocab_size);
}

template <class Leave>
void ChildEngine::leave(const Leave& leave) {
  {
    const std::lock_guard lock(mutex_);
    leave(mail_);
  }
  const uint64_t one = 1;
  [[maybe_unused]] const auto put = ::write(wake_, &one, sizeof(one));  // else it is awake
}

std::optional<RequestId> ChildEngine::submit(GenerateRequest request,
                                             std::shared_ptr<Channel> channel, int64_t tag) {
  check(request);
  const int32_t n = request.n;
  const auto length = std::ssize(request.prompt);
  if (!queue_.try_add(n, length)) return std::nullopt;
  const RequestId id = next_id_.fetch_add(n, std::memory_order_relaxed);
  const auto shared =
      std::make_shared<const ChildRequest>(id, tag, std::move(request), std::move(channel));
  leave([&](Mail& mail) {
    if (is_closed_) {
      queue_.remove(n, length);
      throw Error(ErrorCode::cancelled, "the engine was stopped before the request began");
    }
    for (int32_t choice = 0; choice < n; ++choice) {
      mail.submitted.push_back(std::make_unique<ChildSequence>(shared, choice));
    }
    ++mail.num_requests;
  });
  return id;
}

void ChildEngine::cancel(RequestId id) {
  leave([id](Mail& mail) { mail.cancelled.push_back(id); });
}

void ChildEngine::change(RequestId id, bool defers) {
  leave([&](Mail& mail) { mail.changes.push_back({.id = id, .defers = defers}); });
}

void ChildEngine::inspect(EngineInspection look) {
  leave([&](Mail& mail) { mail.inspections.push_back(std::move(look)); });
}

void ChildEngine::wake() {
  leave([](Mail& mail) { mail.was_woken = true; });
}

size_t ChildEngine::wait_for_mail(milliseconds timeout, size_t at_least) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    drain(wake_);
    {
      const std::lock_guard lock(mutex_);
      const bool has_changes =
          !mail_.cancelled.empty() || !mail_.changes.empty() || !mail_.inspections.empty();
      const size_t count = mail_.num_requests;
      if (mail_.was_woken || count >= at_least || (count == 0 && has_changes)) return count;
      const auto left =
          std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) return count;
      timeout = left;
    }
    watch_idle_child(timeout);
  }
}

// One that ends while nobody asks for anything is waited for here.
void ChildEngine::watch_idle_child(milliseconds timeout) {
  if (child_ == nullptr) {
    pollfd watched{wake_, POLLIN, 0};
    ::poll(&watched, 1, static_cast<int>(timeout.count()));
    return;
  }
  try {
    if (const auto answer = child_->poll(timeout, wake_)) take(*answer);
  } catch (const Error& error) {
    lose_child(error.what());
  }
}

bool ChildEngine::step() {
  take_mail();
  end_cancelled();
  start_work();
  listen();
  end_silent_work();
  publish();
  return !waiting_.empty() || !work_.empty();
}

void ChildEngine::take_mail() {
  drain(wake_);
  Mail mail;
  {
    const std::lock_guard lock(mutex_);
    mail = std::exchange(mail_, {});
  }
  for (SequencePtr& sequence : mail.submitted) {
    const auto place = std::upper_bound(waiting_.begin(), waiting_.end(), sequence, is_before);
    waiting_.insert(place, std::move(sequence));
  }
  for (const RequestId id : mail.cancelled) {
    bool found = false;
    const auto end_one = [&](ChildSequence& sequence) {
      if (sequence.shared().id != id || sequence.has_ended()) return;
      found = true;
      sequence.end({.reason = FinishReason::cancelled});
      touch(sequence);
    };
    for (const SequencePtr& sequence : waiting_) end_one(*sequence);
    for (const auto& [number, work] : work_) end_one(*work.sequence);
    if (!found) ++counters_.late_cancellations;
  }
  for (const Change& change : mail.changes) {
    for (const SequencePtr& sequence : waiting_) {
      if (sequence->shared().id == change.id) sequence->is_deferred = change.defers;
    }
    std::stable_sort(waiting_.begin(), waiting_.end(), is_before);
  }
  for (const EngineInspection& look : mail.inspections) look(*this);
}

// Those that their callers cancelled, and those that need nothing computed.
void ChildEngine::end_cancelled() {
  for (const SequencePtr& sequence : waiting_) {
    if (sequence->request().cancelled.stop_requested()) {
      sequence->end({.reason = FinishReason::cancelled});
    } else if (sequence->request().max_tokens == 0 && !sequence->wants_scores()) {
      sequence->end({.reason = FinishReason::length});
    }
    if (!sequence->has_ended()) continue;
    touch(*sequence);
    leave_queue(*sequence);
  }
  std::erase_if(waiting_, [](const SequencePtr& one) { return one->has_ended(); });
  for (auto& [id, work] : work_) {
    if (work.sequence->request().cancelled.stop_requested()) {
      work.sequence->end({.reason = FinishReason::cancelled});
      touch(*work.sequence);
    }
    if (work.sequence->has_ended()) cancel_work(id, work);
  }
}

// The child answers what was cancelled, too, and no other begins before.
void ChildEngine::cancel_work(int64_t id, Work& work) {
  if (work.ended) return;
  work.ended = Clock::now();
  child_->post(
      object_json([&](JsonWriter& writer) { writer.member("op", "cancel").member("id", id); }));
}

void ChildEngine::start_work() {
  if (waiting_.empty() || !has_child() || !child_->is_ready()) return;
  while (!waiting_.empty() && std::ssize(work_) < options_.limits.max_num_seqs) {
    SequencePtr sequence = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    leave_queue(*sequence);
    sequence->start();
    const bool scores = sequence->wants_scores();
    ask(std::move(sequence), scores);
  }
}

// Starts one where none is left. One that has ended since its last answer harms no request.
bool ChildEngine::has_child() {
  if (child_ != nullptr && work_.empty() && child_->is_ready()) {
    watch_idle_child(milliseconds(0));
  }
  if (child_ != nullptr) return true;
  try {
    child_ = std::make_unique<ModelChild>(options_.child);
    ++num_restarts_;
  } catch (const Error& error) {
    fail_first(error.what());
  }
  return child_ != nullptr;
}

void ChildEngine::ask(SequencePtr sequence, bool scores) {
  const int64_t id = next_work_++;
  child_->post(scores ? score_message(id, sequence->request())
                      : generate_message(id, sequence->request(), sequence->choice()));
  work_.emplace(id,
                Work{.sequence = std::move(sequence), .is_score = scores, .heard = Clock::now()});
}

void ChildEngine::listen() {
  if (child_ == nullptr || (child_->is_ready() && work_.empty())) return;
  try {
    milliseconds patience = touched_.empty() ? kPatience : milliseconds(0);
    for (int i = 0; i < kMostMessages; ++i) {
      const bool was_ready = child_->is_ready();
      const auto answer = child_->poll(std::exchange(patience, milliseconds(0)), wake_);
      if (!answer && was_ready == child_->is_ready()) break;
      if (answer) take(*answer);
    }
  } catch (const Error& error) {
    lose_child(error.what());
  }
}

void ChildEngine::take(const Json& answer) {
  const JsonCursor message(answer, options_.child.backend, ErrorCode::corrupt);
  const int64_t id = message.at("id").integer();
  const auto found = work_.find(id);
  if (found == work_.end()) message.fail("answers nothing that is being computed");
  Work& work = found->second;
  work.heard = Clock::now();
  ChildSequence& sequence = *work.sequence;
  if (const std::string error = child_error(answer); !error.empty()) {
    fail(sequence, fmt::format("{}: {}", options_.child.backend, error));
    work_.erase(found);
  } else if (work.is_score) {
    take_scores(found, message);
  } else if (const auto reason = message.find("done")) {
    if (!sequence.has_ended()) sequence.end({.reason = finish_reason(*reason)});
    touch(sequence);
    work_.erase(found);
    if (facts_.memory_bytes) child_->post(R"({"op":"info"})");
  } else if (!sequence.has_ended()) {
    sequence.take_token(message, options_.vocab_size, token_texts_);
    const auto token = static_cast<TokenId>(message.at("token").integer());
    record_.tokens.push_back({.id = sequence.arrival_id(), .token = token});
    touch(sequence);
    // It ends by itself behind its last token, but not behind a stop string.
    if (sequence.has_ended()) cancel_work(id, work);
  }
}

void ChildEngine::take_scores(WorkPlace place, const JsonCursor& answer) {
  ChildSequence& scored = *place->second.sequence;
  if (!scored.has_ended()) scored.take_scores(answer, options_.vocab_size);
  touch(scored);
  SequencePtr sequence = std::move(place->second.sequence);
  work_.erase(place);
  if (!sequence->has_ended()) ask(std::move(sequence), false);
}

void ChildEngine::end_silent_work() {
  if (child_ == nullptr) return;
  const auto now = Clock::now();
  const auto silent = [&](std::string_view what, auto limit) {
    lose_child(fmt::format("{}: {} within {:g} s", options_.child.backend, what,
                           std::chrono::duration<double>(limit).count()));
  };
  const auto timeout = options_.child.timeout;
  if (!child_->is_ready()) {
    const auto limit = options_.child.load_timeout;
    if (now - child_->started() > limit) silent("the child hasn't loaded the model", limit);
    return;
  }
  for (const auto& [id, work] : work_) {
    if (work.ended && now - *work.ended > options_.cancel_timeout) {
      return silent("the child hasn't ended what was cancelled", options_.cancel_timeout);
    }
    if (!work.ended && now - work.heard > timeout) {
      return silent("the child has written nothing", timeout);
    }
  }
}

// Ends the child; what it computes, or the request that it was started for, fails.
void ChildEngine::lose_child(const std::string& message) {
  const bool was_loading = !child_->is_ready();
  child_.reset();
  const std::string whole = message + "; the next request starts another child";
  for (auto& [id, work] : work_) fail(*work.sequence, whole);
  work_.clear();
  if (was_loading) fail_first(whole);
}

void ChildEngine::fail(ChildSequence& sequence, const std::string& message) {
  sequence.end({.reason = FinishReason::error},
               ErrorInfo{.code = ErrorCode::internal, .message = message});
  touch(sequence);
}

void ChildEngine::fail_first(const std::string& message) {
  if (waiting_.empty()) return;
  fail(*waiting_.front(), message);
  leave_queue(*waiting_.front());
  waiting_.erase(waiting_.begin());
}

// The first choice of a request has counted its prompt.
void ChildEngine::leave_queue(const ChildSequence& sequence) {
  queue_.remove(1, sequence.choice() == 0 ? std::ssize(sequence.request().prompt) : 0);
}

void ChildEngine::touch(const ChildSequence& sequence) {
  touched_.insert(sequence.shared().channel);
}

void ChildEngine::publish() {
  int64_t num_running = 0;
  for (const auto& [id, work] : work_) num_running += work.sequence->has_ended() ? 0 : 1;
  num_running_.store(num_running, std::memory_order_relaxed);
  num_waiting_.store(std::ssize(waiting_), std::memory_order_relaxed);
  for (const auto& channel : touched_) channel->notify();
  touched_.clear();
  if (record_.tokens.empty()) return;
  record_.step = counters_.steps++;
  record_.num_rows = std::ssize(record_.tokens);
  record_.num_waiting = std::ssize(waiting_);
  if (observer_ != nullptr) observer_->on_step(record_);
  record_.clear();
}

void ChildEngine::end_all() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  take_mail();
  const auto end_one = [this](ChildSequence& sequence) {
    sequence.end({.reason = FinishReason::cancelled});
    touch(sequence);
  };
  for (const SequencePtr& sequence : waiting_) {
    leave_queue(*sequence);
    end_one(*sequence);
  }
  for (const auto& [id, work] : work_) end_one(*work.sequence);
  waiting_.clear();
  work_.clear();
  child_.reset();
  publish();
}

EngineSnapshot ChildEngine::snapshot() const {
  EngineSnapshot snapshot;
  snapshot.counters = counters_;
  for (const auto& [id, work] : work_) {
    if (!work.sequence->has_ended())
      snapshot.sequences.push_back(snapshot_of(*work.sequence, true));
  }
  for (const SequencePtr& one : waiting_) snapshot.sequences.push_back(snapshot_of(*one, false));
  snapshot.backend = BackendReport{
      .name = options_.child.backend,
      .version = facts_.version,
      .num_restarts = num_restarts_,
      .memory_bytes = child_ == nullptr ? std::nullopt : child_->facts().memory_bytes};
  return snapshot;
}

std::vector<int64_t> ChildEngine::unstarted_tags() const {
  std::vector<int64_t> tags;
  for (const SequencePtr& sequence : waiting_) {
    if (sequence->choice() == 0) tags.push_back(sequence->shared().tag);
  }
  return tags;
}

}  // namespace paceline
