// RequestIntake checks requests and leaves them for the next step, on the threads of those who
// submit them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "engine/mailbox.h"
#include "engine/queue_limit.h"
#include "engine/request.h"
#include "kv/kv_cache.h"
#include "runner/runner.h"

namespace paceline {

// Any thread. Everything referred to must outlive it.
class RequestIntake {
 public:
  RequestIntake(const Runner& runner, KvCache& cache, const EngineLimits& limits);

  // As Engine's.
  std::optional<RequestId> submit(GenerateRequest request, std::shared_ptr<Channel> channel,
                                  int64_t tag);
  void check(GenerateRequest& request) const;

  Mailbox& mailbox() { return mailbox_; }
  // Submitted and not yet admitted.
  QueueLimit& queue() { return queue_; }

 private:
  const Runner& runner_;
  KvCache& cache_;
  const EngineLimits& limits_;
  Mailbox mailbox_;
  QueueLimit queue_;
  std::atomic<RequestId> next_id_ = 1;
};

}  // namespace paceline
