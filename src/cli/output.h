// Output writes to standard output; what was written is either there or an error. Any thread may
// write: a server's threads log while the main one waits.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

namespace paceline {

// Nobody reads standard output any more (a closed pipe): the program ends without a word.
struct OutputClosed {};

class Output {
 public:
  Output() = default;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Kept until flush() or until much has come together.
  void write(std::string_view text);
  // Throws OutputClosed, or Error exhausted with the system's reason (disk full).
  void flush();

 private:
  void write_pending();  // with mutex_ held

  std::mutex mutex_;
  std::string pending_;
};

}  // namespace paceline
