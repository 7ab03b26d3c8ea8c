#include "server/reader_pace.h"

#include <algorithm>
#include <utility>

namespace paceline {

bool ReaderPace::lags(HttpProgress progress) {
  const size_t index = num_looks_++ % kLooks;
  const int64_t before = std::exchange(confirmed_[index], progress.confirmed);
  if (num_looks_ <= kLooks) return false;
  const int64_t num_unread = progress.written - progress.confirmed;
  return num_unread > std::max(progress.confirmed - before, kMinUnread);
}

}  // namespace paceline
