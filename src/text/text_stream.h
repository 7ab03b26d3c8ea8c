// TextStream turns the bytes of output tokens into well-formed text, up to a releasable position.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace paceline {

class TextStream {
 public:
  void push(std::string_view token_bytes) { bytes_ += token_bytes; }

  // The text from the end of the last one up to `releasable_bytes`, without an incomplete
  // character.
  std::string take(int64_t releasable_bytes);
  // The rest up to `end`, which ends the stream; an incomplete character becomes U+FFFD.
  std::string finish(int64_t end_bytes);

 private:
  std::string bytes_;
  size_t taken_ = 0;
};

}  // namespace paceline
