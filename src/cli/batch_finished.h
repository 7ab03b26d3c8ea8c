// FinishedRequests is the set of requests that an earlier run finished, read from its output.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace paceline {

class FinishedRequests {
 public:
  // Notes a request of the input. False when the name was used before.
  bool note_seen(const std::string& custom_id);
  bool is_done(const std::string& custom_id) const;
  // Whether the line was reported as malformed.
  bool is_reported(int64_t line) const { return reported_lines_.contains(line); }

  // The size of the output up to the end of its last whole line.
  int64_t valid_bytes() const { return valid_bytes_; }

 private:
  friend FinishedRequests read_finished_requests(int descriptor, const std::string& name);
  void note_line(const std::string& head, const std::string& where);

  struct Marks {
    bool is_done = false;
    bool is_seen = false;
  };
  std::unordered_map<std::string, Marks> requests_;
  std::unordered_set<int64_t> reported_lines_;
  int64_t valid_bytes_ = 0;
};

// Reads an output file from its beginning, up to a line that a crash left incomplete or as zeros.
// Throws Error invalid "NAME: line N ..." when a line isn't a result of a batch: such a file must
// not be overwritten.
FinishedRequests read_finished_requests(int descriptor, const std::string& name);

}  // namespace paceline
