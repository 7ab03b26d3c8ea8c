// FormatCursor reads the characters of a format one by one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace paceline {

class FormatCursor {
 public:
  explicit FormatCursor(std::string_view text) : text_(text) {}

  bool at_end() const { return at_ >= text_.size(); }
  // Both return 0 at the end.
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  char take() { return at_end() ? '\0' : text_[at_++]; }
  bool take_if(char c) {
    if (at_end() || peek() != c) return false;
    ++at_;
    return true;
  }
  // Takes one of these characters, or returns 0.
  char take_any(std::string_view of) {
    return !at_end() && of.find(peek()) != std::string_view::npos ? take() : '\0';
  }
  // Takes the characters before one of these.
  std::string_view take_until(std::string_view ends) {
    const size_t end = std::min(text_.find_first_of(ends, at_), text_.size());
    const std::string_view part = text_.substr(at_, end - at_);
    at_ = end;
    return part;
  }
  std::optional<int64_t> take_number() {
    if (peek() < '0' || peek() > '9') return std::nullopt;
    int64_t value = 0;
    while (peek() >= '0' && peek() <= '9') {
      value = std::min(value * 10 + (take() - '0'), kLargest);
    }
    return value;
  }
  void skip(size_t bytes) { at_ += bytes; }

 private:
  static constexpr int64_t kLargest = int64_t{1} << 40;

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace paceline
