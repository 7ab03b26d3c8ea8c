// GgufCursor reads the numbers and strings of a GGUF file's header, and never past its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "paceline/error.h"

namespace paceline {

class GgufCursor {
 public:
  // Reads the first `limit` bytes of `file` at most.
  GgufCursor(std::span<const std::byte> file, uint64_t limit, std::string_view where)
      : file_(file), limit_(limit), where_(where) {}

  // Sets the subject of later errors: "tensor 3 of 12".
  void set_subject(std::string subject) { subject_ = std::move(subject); }
  uint64_t position() const { return position_; }

  // The next bytes. Throws Error corrupt when the file or the limit ends before them.
  std::span<const std::byte> take(uint64_t num_bytes) {
    if (num_bytes > file_.size() - position_) fail_at_end(num_bytes);
    if (num_bytes > limit_ || position_ > limit_ - num_bytes) fail_at_limit();
    const auto bytes = file_.subspan(position_, num_bytes);
    position_ += num_bytes;
    return bytes;
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  // A string with its length before it; `what` names it in errors.
  std::span<const std::byte> string(uint64_t max_bytes, std::string_view what);
  std::string_view text(uint64_t max_bytes, std::string_view what) {
    const auto bytes = string(max_bytes, what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // Throws Error "WHERE: SUBJECT: WHAT".
  [[noreturn]] void fail(ErrorCode code, const std::string& what) const;
  [[noreturn]] void corrupt(const std::string& what) const { fail(ErrorCode::corrupt, what); }

 private:
  [[noreturn]] void fail_at_end(uint64_t num_bytes) const;
  [[noreturn]] void fail_at_limit() const;

  std::span<const std::byte> file_;
  uint64_t limit_;
  uint64_t position_ = 0;
  std::string_view where_;
  std::string subject_ = "header";
};

}  // namespace paceline
