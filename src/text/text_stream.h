// TextStream turns the bytes of output tokens into well-formed text, no faster than may be shown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace paceline {

class TextStream {
 public:
  void push(std::string_view token_bytes) { bytes_ += token_bytes; }

  // The text of bytes [what was returned before, releasable), without a character that is still
  // incomplete.
  std::string take(int64_t releasable_bytes);
  // The rest up to `end`; an incomplete character becomes U+FFFD. The stream is over then.
  std::string finish(int64_t end_bytes);

 private:
  std::string bytes_;
  size_t taken_ = 0;
};

}  // namespace paceline
