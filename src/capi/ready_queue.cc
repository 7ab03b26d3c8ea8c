#include "capi/ready_queue.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "capi/call_status.h"
#include "capi/handles.h"

namespace paceline::capi {

ReadyQueue::ReadyQueue() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ < 0) {
    throw Error(ErrorCode::exhausted, fmt::format("eventfd: {}", std::strerror(errno)));
  }
}

ReadyQueue::~ReadyQueue() { ::close(descriptor_); }

void ReadyQueue::add(int64_t tag) {
  const std::lock_guard lock(mutex_);
  const bool was_empty = tags_.empty();
  tags_.insert(tag);
  const uint64_t one = 1;
  if (was_empty && ::write(descriptor_, &one, sizeof(one)) < 0) return;  // it is readable already
}

size_t ReadyQueue::take(std::span<int64_t> tags) {
  const std::lock_guard lock(mutex_);
  size_t count = 0;
  while (count < tags.size() && !tags_.empty()) {
    tags[count++] = tags_.extract(tags_.begin()).value();
  }
  uint64_t signals = 0;
  if (tags_.empty() && ::read(descriptor_, &signals, sizeof(signals)) < 0) return count;
  return count;
}

}  // namespace paceline::capi

using namespace paceline::capi;

paceline_status paceline_new_queue(paceline_queue** queue) {
  return guarded([&] {
    begin_result(queue, "queue");
    *queue = new paceline_queue{std::make_shared<ReadyQueue>()};
  });
}

int paceline_queue_descriptor(const paceline_queue* queue) {
  return queue == nullptr ? -1 : queue->ready->descriptor();
}

size_t paceline_take_ready(paceline_queue* queue, int64_t* tags, size_t most) {
  if (queue == nullptr || tags == nullptr) return 0;
  return queue->ready->take({tags, most});
}

void paceline_free_queue(paceline_queue* queue) { delete queue; }
