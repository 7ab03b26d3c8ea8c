// LineReader reads a file or pipe line by line as the lines arrive, within a size limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace paceline {

constexpr size_t kMaxLineBytes = 8 << 20;

struct Line {
  int64_t number = 0;        // from 1
  std::string text;          // without its line feed
  bool is_too_long = false;  // the text was cut at the limit

  bool is_blank() const { return text.find_first_not_of(" \t") == std::string::npos; }
};

class LineReader {
 public:
  // "-" is standard input. Throws Error not_found naming the file and the system's reason.
  explicit LineReader(const std::string& path);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // Nothing at the end. Throws Error invalid when reading fails.
  std::optional<Line> next();

  // Whether next() would return without waiting for the writer of the pipe.
  bool is_ready();

  // The fraction of the file that was read; 0 for a pipe or device.
  double share_read() const;

 private:
  bool fill();

  std::string name_;
  int descriptor_ = -1;
  std::string buffer_;
  size_t begin_ = 0;  // of the bytes not yet returned
  int64_t bytes_read_ = 0;
  bool at_end_ = false;
  int64_t number_ = 0;
};

}  // namespace paceline
