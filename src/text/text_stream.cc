#include "text/text_stream.h"

#include <algorithm>

#include "base/utf8.h"

namespace paceline {

std::string TextStream::take(int64_t releasable_bytes) {
  const size_t end = std::min(static_cast<size_t>(releasable_bytes), bytes_.size());
  if (end <= taken_) return {};
  std::string_view ready = std::string_view(bytes_).substr(taken_, end - taken_);
  ready.remove_suffix(incomplete_utf8_suffix(ready));
  taken_ += ready.size();
  return replace_invalid_utf8(ready);
}

std::string TextStream::finish(int64_t end_bytes) {
  const size_t end = std::min(static_cast<size_t>(end_bytes), bytes_.size());
  if (end <= taken_) return {};
  const std::string_view rest = std::string_view(bytes_).substr(taken_, end - taken_);
  taken_ = end;
  return replace_invalid_utf8(rest);
}

}  // namespace paceline
