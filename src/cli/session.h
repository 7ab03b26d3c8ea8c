// Session is the process around a command: standard output, notes on standard error, interruption.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "cli/interrupt.h"
#include "paceline/error.h"

namespace paceline {

// Standard output is a closed pipe: the program ends without a message.
struct OutputClosed {};

// Standard output with checked writes. Any thread may write: a server's threads log while the main
// thread waits.
class Output {
 public:
  Output() = default;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Buffered until flush() or until the buffer is large.
  void write(std::string_view text);
  // Throws OutputClosed, or Error exhausted with the system's reason (disk full).
  void flush();
  // Both.
  void print(std::string_view text);

 private:
  void write_pending();  // with mutex_ held

  std::mutex mutex_;
  std::string pending_;
};

class Session {
 public:
  // Notes are not printed with --quiet.
  void set_quiet(bool is_quiet) { is_quiet_ = is_quiet; }

  // Errors begin with their code: --error-codes.
  void set_error_codes(bool has_codes) { has_error_codes_ = has_codes; }

  Output& out() { return out_; }
  Interrupt& interrupt() { return interrupt_; }
  std::stop_token stop_token() const { return interrupt_.stop_token(); }
  bool interrupted() const { return interrupt_.signal() != 0; }
  // 128 + signal after an interruption, else `code`.
  int exit_code(int code) const { return interrupted() ? 128 + interrupt_.signal() : code; }
  // Sets the end of the program's last line, after "interrupted; ".
  void explain_interruption(std::string note) {
    interrupt_.explain([note = std::move(note)] { return note; });
  }

  // The same for a command that writes a directory whole or not at all: `complete` is said once it
  // is there.
  void explain_written(const std::string& path, const std::string& complete);

  bool stdout_is_terminal() const { return stdout_is_terminal_; }
  bool stderr_is_terminal() const { return stderr_is_terminal_; }
  bool stdin_is_terminal() const { return is_terminal(0); }
  // Of standard output, as wide as it is now; 0 where that is no terminal, or not known.
  int64_t stdout_columns() const;
  bool shows_progress() const { return stderr_is_terminal_ && !is_quiet_; }

  // Prints one line to standard error, after flushing standard output.
  void print_line(std::string_view line);
  // The same, unless --quiet.
  void print_note(std::string_view line) {
    if (!is_quiet_) print_line(line);
  }
  void print_error(std::string_view message);  // with "paceline: " in front
  void print_error(ErrorCode code, std::string_view message);
  // With a text that fmt makes.
  template <class Arg, class... Args>
  void print_line(fmt::format_string<Arg, Args...> line, Arg&& arg, Args&&... args) {
    print_line(fmt::format(line, std::forward<Arg>(arg), std::forward<Args>(args)...));
  }
  template <class Arg, class... Args>
  void print_note(fmt::format_string<Arg, Args...> line, Arg&& arg, Args&&... args) {
    print_note(fmt::format(line, std::forward<Arg>(arg), std::forward<Args>(args)...));
  }
  template <class Arg, class... Args>
  void print_error(fmt::format_string<Arg, Args...> message, Arg&& arg, Args&&... args) {
    print_error(fmt::format(message, std::forward<Arg>(arg), std::forward<Args>(args)...));
  }

 private:
  Interrupt interrupt_;
  Output out_;
  bool is_quiet_ = false;
  bool has_error_codes_ = false;
  bool stdout_is_terminal_ = is_terminal(1);
  bool stderr_is_terminal_ = is_terminal(2);

  static bool is_terminal(int descriptor);
};

}  // namespace paceline
