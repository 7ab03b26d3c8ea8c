#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/bus_error.h"
#include "cli/program.h"

namespace {

// A file opened later must not take the descriptor of a closed standard stream; using that stream
// stays an error.
void occupy_standard_streams() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) == -1 && errno == EBADF) {
      [[maybe_unused]] const int opened =
          open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_streams();
  constexpr int kSoftwareFailure = 70;  // sysexits.h; that of a failed engine
  paceline::exit_on_bus_error(kSoftwareFailure);
  std::signal(SIGPIPE, SIG_DFL);  // a closed pipe ends the program without a message
  return paceline::run_program({argv + 1, argv + argc});
}
