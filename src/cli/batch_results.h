// BatchResults is the output file of a batch: appended to, durable in groups, whole after a crash.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace paceline {

// A line is written at once with one call, so it survives a crash of the process. A thread makes
// all new lines durable (fdatasync) within 100 ms, so they survive a crash of the machine. Errors
// are Error exhausted and name the file.
class BatchResults {
 public:
  // Opens or creates the file and locks it against other runs while this object lives. Throws Error
  // not_found when it can't be opened, invalid when another run has locked it.
  explicit BatchResults(const std::string& path);
  ~BatchResults();
  BatchResults(const BatchResults&) = delete;
  BatchResults& operator=(const BatchResults&) = delete;

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  // False for a device or pipe, which has no earlier results and isn't locked.
  bool is_file() const { return is_file_; }

  // Truncates the file to `size` bytes. Only before the first append.
  void cut(int64_t size);
  // Adds a whole line with its line feed. If that fails, the file keeps its former size.
  void append(std::string_view line);
  // Makes all lines durable. Nothing may be appended afterwards.
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
