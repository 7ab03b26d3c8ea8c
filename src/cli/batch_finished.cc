#include "cli/batch_finished.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string_view>

#include "base/error.h"
#include "base/json_cursor.h"

namespace paceline {
namespace {

// The part of a line that is parsed: a line with an error is shorter, one with a response begins
// with the needed fields.
constexpr size_t kMaxHeadBytes = 1 << 16;
constexpr size_t kChunkBytes = 1 << 18;

struct ScannedLine {
  int64_t number = 0;
  std::string head;  // without its end
  int64_t end = 0;   // the offset behind its end
  bool has_zeros = false;
};

// Calls `take` for every whole line, until it returns false.
void scan_lines(int descriptor, const std::string& name,
                const std::function<bool(const ScannedLine& line)>& take) {
  std::string chunk(kChunkBytes, '\0');
  ScannedLine line{.number = 1};
  while (true) {
    const ssize_t count = pread(descriptor, chunk.data(), chunk.size(), line.end);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw error_of(ErrorCode::invalid, "{}: {}", name, std::strerror(errno));
    if (count == 0) return;
    std::string_view rest(chunk.data(), static_cast<size_t>(count));
    while (!rest.empty()) {
      const size_t size = std::min(rest.find('\n'), rest.size());
      const std::string_view part = rest.substr(0, size);
      line.head += part.substr(0, kMaxHeadBytes - std::min(line.head.size(), kMaxHeadBytes));
      line.has_zeros = line.has_zeros || part.find('\0') != std::string_view::npos;
      const bool is_whole = size < rest.size();
      rest.remove_prefix(size + (is_whole ? 1 : 0));
      line.end += static_cast<int64_t>(size) + (is_whole ? 1 : 0);
      if (!is_whole) continue;
      if (!take(line)) return;
      line = {.number = line.number + 1, .end = line.end};
    }
  }
}

// Parses id, custom_id, and the beginning of a response or a whole error. Quotes inside JSON
// strings are escaped, so the mark occurs nowhere else.
Json parse_head(const std::string& head, const std::string& where) {
  constexpr std::string_view kMark = ",\"response\":{";
  const size_t mark = head.find(kMark);
  if (mark == std::string::npos) return parse_json_line(head, where);
  return parse_json_line(head.substr(0, mark + kMark.size()) + "},\"error\":null}", where);
}

}  // namespace

bool FinishedRequests::note_seen(const std::string& custom_id) {
  Marks& marks = requests_[custom_id];
  const bool is_new = !marks.is_seen;
  marks.is_seen = true;
  return is_new;
}

bool FinishedRequests::is_done(const std::string& custom_id) const {
  const auto found = requests_.find(custom_id);
  return found != requests_.end() && found->second.is_done;
}

void FinishedRequests::note_line(const std::string& head, const std::string& where) {
  const Json record = parse_head(head, where);
  const JsonCursor root(record, where);
  const auto response = root.find("response");
  const auto custom_id = root.find("custom_id");
  if (response && custom_id && custom_id->is_string()) {
    requests_[custom_id->string()].is_done = true;
    return;
  }
  const auto error = root.find("error");
  const auto line = error ? error->find("line") : std::nullopt;
  if (response || !line) root.fail("neither a response nor an error");
  reported_lines_.insert(line->integer());
}

FinishedRequests read_finished_requests(int descriptor, const std::string& name) {
  FinishedRequests finished;
  scan_lines(descriptor, name, [&](const ScannedLine& line) {
    if (line.has_zeros) return false;
    const std::string where = fmt::format("line {}", line.number);
    try {
      finished.note_line(line.head, where);
    } catch (const Error& error) {
      throw error_of(ErrorCode::invalid,
                     "{}: not the output of a batch, nothing was written to it: {}", name,
                     error.what());
    }
    finished.valid_bytes_ = line.end;
    return true;
  });
  return finished;
}

}  // namespace paceline
