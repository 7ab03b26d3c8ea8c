// ReadyQueue tells a program with a loop of its own which generations have something to read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <span>

namespace paceline::capi {

// Any thread.
class ReadyQueue {
 public:
  // Throws Error exhausted when the system has no further descriptor.
  ReadyQueue();
  ~ReadyQueue();
  ReadyQueue(const ReadyQueue&) = delete;
  ReadyQueue& operator=(const ReadyQueue&) = delete;

  // Readable while there are tags.
  int descriptor() const { return descriptor_; }
  // Adds a tag, unless it is there.
  void add(int64_t tag);
  // Takes tags into `tags`, and returns their number.
  size_t take(std::span<int64_t> tags);

 private:
  int descriptor_;
  std::mutex mutex_;
  std::set<int64_t> tags_;
};

}  // namespace paceline::capi
