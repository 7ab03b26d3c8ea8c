#include "traffic/load_client/answer_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "base/error.h"

namespace paceline::traffic {
namespace {

int64_t read_number(std::string_view text, int base) {
  int64_t number = -1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (read.ec != std::errc() || number < 0) {
    throw Error(ErrorCode::corrupt, fmt::format("answer: \"{}\" is no number", text));
  }
  return number;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

}  // namespace

void AnswerReader::begin(Body on_body) {
  *this = AnswerReader();
  part_ = Part::head;
  on_body_ = std::move(on_body);
}

void AnswerReader::feed(std::string_view bytes) {
  has_begun_ = has_begun_ || !bytes.empty();
  while (!bytes.empty()) {
    if (part_ == Part::done) {
      throw Error(ErrorCode::corrupt, fmt::format("{} bytes behind the answer", bytes.size()));
    }
    if (part_ == Part::body) {
      take_body(bytes, Part::done);
    } else if (part_ == Part::chunk) {
      take_body(bytes, Part::chunk_end);
    } else if (take_line(bytes)) {
      end_line();
      line_.clear();
    }
  }
}

// Whether the line is complete.
bool AnswerReader::take_line(std::string_view& bytes) {
  constexpr size_t kLongest = 16 << 10;
  const size_t end = bytes.find('\n');
  line_ += bytes.substr(0, end);
  if (line_.size() > kLongest) throw Error(ErrorCode::corrupt, "answer: a line without an end");
  if (end == std::string_view::npos) {
    bytes = {};
    return false;
  }
  bytes.remove_prefix(end + 1);
  if (!line_.ends_with('\r')) {
    throw Error(ErrorCode::corrupt, fmt::format("answer: \"{}\" ends without CR", line_));
  }
  line_.pop_back();
  return true;
}

void AnswerReader::end_line() {
  constexpr int kHex = 16;
  switch (part_) {
    case Part::head:
      return line_.empty() ? end_head() : read_field(line_);
    case Part::chunk_size:
      num_left_ = read_number(line_, kHex);
      part_ = num_left_ == 0 ? Part::trailer : Part::chunk;
      return;
    case Part::chunk_end:
      if (!line_.empty()) throw Error(ErrorCode::corrupt, "answer: a chunk longer than its size");
      part_ = Part::chunk_size;
      return;
    default:
      if (line_.empty()) part_ = Part::done;
  }
}

void AnswerReader::read_field(std::string_view line) {
  constexpr int kDecimal = 10;
  constexpr std::string_view kVersion = "HTTP/1.1 ";
  if (std::exchange(is_first_line_, false)) {
    if (!line.starts_with(kVersion)) {
      throw Error(ErrorCode::corrupt, fmt::format("answer: it begins with \"{}\"", line));
    }
    status_ = static_cast<int>(read_number(line.substr(kVersion.size(), 3), kDecimal));
    return;
  }
  const size_t colon = std::min(line.find(':'), line.size());
  const std::string name = lower(line.substr(0, colon));
  std::string_view value = line.substr(std::min(colon + 1, line.size()));
  while (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "content-length") num_left_ = read_number(value, kDecimal);
  if (name == "transfer-encoding") is_chunked_ = lower(value) == "chunked";
  if (name == "connection") closes_ = lower(value) == "close";
}

void AnswerReader::end_head() {
  constexpr int kContinue = 100;
  if (status_ == kContinue) {
    is_first_line_ = true;
  } else if (is_chunked_) {
    part_ = Part::chunk_size;
  } else {
    part_ = num_left_ == 0 ? Part::done : Part::body;
  }
}

void AnswerReader::take_body(std::string_view& bytes, Part behind) {
  const size_t count = std::min(bytes.size(), static_cast<size_t>(num_left_));
  on_body_(bytes.substr(0, count));
  bytes.remove_prefix(count);
  num_left_ -= static_cast<int64_t>(count);
  if (num_left_ == 0) part_ = behind;
}

}  // namespace paceline::traffic
