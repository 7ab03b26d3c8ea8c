// BatchResults is the output file of a batch: appended to, durable in groups, whole after a crash.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace paceline {

// A line is written with one call as soon as it is there, so that it outlives the process; at most
// 100 ms later a thread has made it durable (fdatasync, one for all lines of that time), so that it
// outlives the machine. Errors name the file and are Error exhausted.
class BatchResults {
 public:
  // Opens or creates the file and locks it against other runs until this goes. Throws Error
  // not_found when it can't be opened, invalid when another run has it.
  explicit BatchResults(const std::string& path);
  ~BatchResults();
  BatchResults(const BatchResults&) = delete;
  BatchResults& operator=(const BatchResults&) = delete;

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  // A device or a pipe holds no earlier results, and isn't locked.
  bool is_file() const { return is_file_; }

  // Drops what stands behind the first `size` bytes. Before the first append.
  void cut(int64_t size);
  // Adds a whole line, its end included. When that fails, the file ends where it did before.
  void append(std::string_view line);
  // Makes durable what isn't yet. Nothing may be appended afterwards.
  void finish();

 private:
  bool unsynced() const { return synced_ < size_; }
  void keep_durable(const std::stop_token& stop);
  void sync(std::unique_lock<std::mutex>& lock);
  [[noreturn]] void fail(int reason, int64_t valid_size);
  void stop_syncing();

  std::string path_;
  int descriptor_ = -1;
  bool is_file_ = false;
  std::mutex mutex_;  // guards what follows
  std::condition_variable_any wake_;
  int64_t size_ = 0;
  int64_t synced_ = 0;  // bytes known to be durable
  int sync_error_ = 0;
  std::jthread syncer_;
};

}  // namespace paceline
