// ChildProcess runs another program and talks to it in lines over its standard streams.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// One thread. What the child writes to its standard error is kept, at most the last 4 KiB of it,
// for messages.
class ChildProcess {
 public:
  // The longest line that is read, and the most that the child may have written unasked.
  static constexpr size_t kLongestLine = size_t{64} << 20;

  // `name` is the child in messages. Throws Error not_found when the program can't be started.
  ChildProcess(std::string name, const std::vector<std::string>& arguments);
  // Kills it, and waits for its end.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Both throw Error internal for a child that has ended (with its status and last words), and
  // exhausted at the timeout; read_line also cancelled, and corrupt for a line that is too long.
  void write_line(std::string_view line, std::chrono::milliseconds timeout);
  std::string read_line(std::chrono::milliseconds timeout, const std::stop_token& cancelled);

  const std::string& name() const { return name_; }
  pid_t pid() const { return pid_; }

 private:
  // Waits until the child reads or has written, at most until `deadline`.
  enum class Wanted : bool { to_write, to_read };
  void wait(Wanted wanted, std::chrono::steady_clock::time_point deadline,
            const std::stop_token& cancelled);
  bool read_output();
  void read_errors();
  void kill_and_wait();
  [[noreturn]] void fail_as_ended();

  std::string name_;
  pid_t pid_ = -1;
  int input_ = -1;   // of the child
  int output_ = -1;  // of the child
  int errors_ = -1;
  std::string unread_;      // of its output, after the last line
  std::string last_words_;  // the end of its standard error
};

}  // namespace paceline
