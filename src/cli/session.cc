#include "cli/session.h"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace paceline {

bool Session::is_terminal(int descriptor) { return isatty(descriptor) == 1; }

void Session::say(std::string_view line) {
  out_.flush();
  const std::string whole = std::string(line) + "\n";
  std::fwrite(whole.data(), 1, whole.size(), stderr);
  std::fflush(stderr);
}

void Session::say_error(std::string_view message) { say("paceline: " + std::string(message)); }

}  // namespace paceline
