// BatchResults is the output file of a batch: appended to, durable in groups, whole after a crash.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>

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

// The requests that an earlier run finished, read from its output.
class FinishedRequests {
 public:
  // Notes a request of the input. False when the name was used before.
  bool note_seen(const std::string& custom_id);
  bool is_done(const std::string& custom_id) const;
  // Whether the line was reported as malformed.
  bool is_reported(int64_t line) const { return reported_lines_.contains(line); }

  // The size of the output up to the end of its last whole line.
  int64_t valid_bytes() const { return valid_bytes_; }

 private:
  friend FinishedRequests read_finished_requests(int descriptor, const std::string& name);
  void note_line(const std::string& head, const std::string& where);

  struct Marks {
    bool is_done = false;
    bool is_seen = false;
  };
  std::unordered_map<std::string, Marks> requests_;
  std::unordered_set<int64_t> reported_lines_;
  int64_t valid_bytes_ = 0;
};

// Reads an output file from its beginning, up to a line that a crash left incomplete or as zeros.
// Throws Error invalid "NAME: line N ..." when a line isn't a result of a batch: such a file must
// not be overwritten.
FinishedRequests read_finished_requests(int descriptor, const std::string& name);

}  // namespace paceline
