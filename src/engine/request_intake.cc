#include "engine/request_intake.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "engine/context_error.h"
#include "runner/loaded_adapter.h"

namespace paceline {
namespace {

int64_t most_queued_tokens(const EngineLimits& limits, const StateCache& cache) {
  constexpr int64_t kPools = 4, kUnbounded = std::numeric_limits<int64_t>::max();
  if (limits.max_queued_tokens > 0) return limits.max_queued_tokens;
  const int64_t capacity = cache.capacity_tokens(1);  // unbounded when all groups are windowed
  return capacity > kUnbounded / kPools ? kUnbounded : kPools * capacity;
}

// Refuses a request that runs out of blocks even alone in the cache.
void check_fits(const GenerateRequest& request, const StateCache& cache) {
  const int64_t capacity = cache.capacity_tokens(1);
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  // The last token drawn needs no place.
  const int64_t drawn = request.max_tokens > 0 ? 1 : 0;
  if (prompt + request.max_tokens - drawn <= capacity) return;
  throw context_error(ErrorCode::exhausted,
                      {.field = request.prompt_name,
                       .capacity = capacity + drawn,
                       .prompt_tokens = prompt,
                       .output_tokens = request.max_tokens,
                       .limit = "--kv-cache-memory-bytes, the key/value cache"});
}

// The tokens that the request may come to, whatever memory there is.
int64_t longest_sequence(const GenerateRequest& request, const EngineLimits& limits) {
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t room = std::max<int64_t>(limits.max_model_len - prompt, 0);
  return prompt + std::clamp<int64_t>(request.max_tokens, 0, room);
}

}  // namespace

RequestIntake::RequestIntake(const Runner& runner, StateCache& cache, const EngineLimits& limits)
    : runner_(runner),
      cache_(cache),
      limits_(limits),
      queue_(limits.max_queued, most_queued_tokens(limits, cache)) {}

std::optional<RequestId> RequestIntake::submit(GenerateRequest request,
                                               std::shared_ptr<Channel> channel, int64_t tag) {
  const int64_t longest = longest_sequence(request, limits_);
  check(request);
  if (request.adapter != nullptr) request.prefix.scope.adapter = request.adapter->digest;
  request.prefix.scope.stretched = runner_.stretched_length(longest);
  if (!queue_.try_add(request.n, static_cast<int64_t>(request.prompt.size()))) return std::nullopt;
  const RequestId id = next_id_.fetch_add(request.n, std::memory_order_relaxed);
  auto state =
      std::make_shared<const RequestState>(id, tag, std::move(request), std::move(channel));
  auto sequence = std::make_unique<Sequence>(std::move(state), 0, cache_);
  sequence->extend_hashes(cache_.prefixes(), cache_.block_size(), sequence->num_tokens());
  leave(&Mail::submitted, std::move(sequence));
  return id;
}

void RequestIntake::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
}

void RequestIntake::check_open() const {
  if (is_closed_)
    throw Error(ErrorCode::cancelled, "the engine was stopped before the request began");
}

void RequestIntake::check(GenerateRequest& request) const {
  check_request(request, limits_, runner_.vocab_size());
  check_fits(request, cache_);
}

Mail RequestIntake::take() {
  const std::lock_guard lock(mutex_);
  woken_ = false;
  return std::exchange(mail_, {});
}

size_t RequestIntake::wait(std::chrono::milliseconds timeout, size_t at_least) {
  std::unique_lock lock(mutex_);
  came_.wait_for(lock, timeout, [&] {
    return woken_ || mail_.submitted.size() >= at_least ||
           (mail_.submitted.empty() && (mail_.changes_requests() || !mail_.inspections.empty()));
  });
  return mail_.submitted.size();
}

void RequestIntake::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  came_.notify_all();
}

}  // namespace paceline
