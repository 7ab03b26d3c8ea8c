// ChildProcess runs another program and talks to it in lines over its standard streams.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
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

  // Leaves a line, which poll_line() writes.
  void post_line(std::string_view line) { unsent_.append(line).append("\n"); }
  // The next line; nothing at the timeout, or when `wake`, if there is one, can be read. Throws
  // Error internal for a child that has ended (with its status and last words), and corrupt for one
  // that writes too much.
  std::optional<std::string> poll_line(std::chrono::milliseconds timeout, int wake = -1);

  const std::string& name() const { return name_; }
  pid_t pid() const { return pid_; }

 private:
  // One wait, of at most `timeout`: writes what the child takes, and reads what it has written.
  void exchange(std::chrono::milliseconds timeout, int wake);
  std::optional<std::string> take_line();
  void write_input();
  void read_output();
  void read_errors();
  void kill_and_wait();
  [[noreturn]] void fail_as_ended();

  std::string name_;
  pid_t pid_ = -1;
  int input_ = -1;   // of the child
  int output_ = -1;  // of the child
  int errors_ = -1;
  std::string unsent_;      // lines that it hasn't taken
  std::string unread_;      // of its output
  size_t begin_ = 0;        // of the next line in it
  size_t searched_ = 0;     // no line ends before
  std::string last_words_;  // the end of its standard error
};

}  // namespace paceline
