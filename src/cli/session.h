// Session is the process around a command: standard output, notes on standard error, interruption.
#pragma once

#include <string_view>

#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/settings.h"

namespace paceline {

class Session {
 public:
  Output& out() { return out_; }
  Interrupt& interrupt() { return interrupt_; }
  std::stop_token stop_token() const { return interrupt_.stop_token(); }
  bool interrupted() const { return interrupt_.signal() != 0; }
  // 128 + signal after an interruption, else `code`.
  int exit_code(int code) const { return interrupted() ? 128 + interrupt_.signal() : code; }

  bool stdout_is_terminal() const { return stdout_is_terminal_; }
  bool stderr_is_terminal() const { return stderr_is_terminal_; }
  bool stdin_is_terminal() const { return is_terminal(0); }
  bool shows_progress(const Settings& settings) const {
    return stderr_is_terminal_ && !settings.quiet;
  }

  // One line on standard error, behind what standard output has already been given.
  void say(std::string_view line);
  void say_error(std::string_view message);  // with "paceline: " in front

 private:
  Interrupt interrupt_;
  Output out_;
  bool stdout_is_terminal_ = is_terminal(1);
  bool stderr_is_terminal_ = is_terminal(2);

  static bool is_terminal(int descriptor);
};

}  // namespace paceline
