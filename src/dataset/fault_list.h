// FaultList collects what is wrong with the examples of a file, so that one Error names all of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace paceline {

constexpr size_t kMaxFaults = 20;

class FaultList {
 public:
  // `file` names it in the message, `what` what is counted: "lines".
  FaultList(std::string file, std::string what) : file_(std::move(file)), what_(std::move(what)) {}

  // `message` says which one it is.
  void add(std::string message) { messages_.push_back(std::move(message)); }
  bool is_full() const { return messages_.size() >= kMaxFaults; }
  // Throws Error invalid with all messages, a line each, unless there are none.
  void throw_if_any() const;

 private:
  std::string file_;
  std::string what_;
  std::vector<std::string> messages_;
};

}  // namespace paceline
