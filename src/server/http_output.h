// HttpOutput is what a connection has to send and the kernel hasn't taken yet.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace paceline {

class HttpOutput {
 public:
  // To append to. What has been sent is moved out of the way first once it is the larger part, so
  // that each byte is moved once at most.
  std::string& bytes() {
    if (sent_ > text_.size() / 2) {
      text_.erase(0, sent_);
      sent_ = 0;
    }
    return text_;
  }
  std::string_view unsent() const { return std::string_view(text_).substr(sent_); }
  size_t size() const { return text_.size() - sent_; }
  bool empty() const { return size() == 0; }

  void drop(size_t num_bytes) {
    sent_ += num_bytes;
    if (empty()) clear();
  }
  // An idle connection keeps little.
  void clear() {
    text_.clear();
    if (text_.capacity() > kKeptBytes) text_.shrink_to_fit();
    sent_ = 0;
  }

 private:
  static constexpr size_t kKeptBytes = 4096;

  std::string text_;
  size_t sent_ = 0;
};

}  // namespace paceline
