#include "base/start_thread.h"

#include <fmt/format.h>

#include "paceline/error.h"

namespace paceline {

std::string thread_refusal(const std::system_error& refusal) {
  return fmt::format(
      "{}; raise the limit of threads (ulimit -u, pids.max or TasksMax=) or of "
      "memory (ulimit -v)",
      refusal.code().message());
}

void throw_no_thread(const std::system_error& refusal) {
  throw Error(ErrorCode::exhausted,
              fmt::format("a thread can't be started: {}", thread_refusal(refusal)));
}

}  // namespace paceline
