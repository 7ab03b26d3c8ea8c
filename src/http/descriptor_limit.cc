#include "http/descriptor_limit.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

namespace paceline {

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

int descriptor_mark() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 30) * 95 / 100);
}

std::optional<std::string> lack_of_descriptors(size_t max_connections) {
  const auto mark = static_cast<size_t>(descriptor_mark());
  if (max_connections < mark) return std::nullopt;
  return fmt::format(
      "--max-connections is {}, but this process may have descriptors for about {} only; raise the "
      "limit (ulimit -n, LimitNOFILE=) or lower the option",
      max_connections, mark);
}

}  // namespace paceline
