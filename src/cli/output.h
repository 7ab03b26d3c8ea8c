// Output writes to standard output; what was written is either there or an error.
#pragma once

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
  std::string pending_;
};

}  // namespace paceline
