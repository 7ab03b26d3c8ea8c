// CallReader reads one call from a text that arrives in pieces.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/arguments_reader.h"
#include "tools/tool_set.h"
#include "tools/turn_event.h"
#include "tools/turn_format.h"

namespace paceline {

class CallReader {
 public:
  enum class State : uint8_t {
    running,
    done,
    refused,  // it isn't a call: no event was made
    cut,      // the text ends before an event was made
    broken,   // it stopped being one behind its beginning, which events have told
  };

  // The pieces of the call begin the text, but for `skipped` bytes of the first one. What is given
  // must outlive the reader.
  CallReader(const CallFormat& format, const ToolSet& tools, size_t index, size_t skipped = 0);

  // Takes what it can from the beginning of `text` and returns the number of bytes. What is taken
  // while nothing was told stays in taken().
  size_t take(std::string_view text, bool is_final, const std::function<std::string()>& make_id,
              std::vector<TurnEvent>& events);

  State state() const { return state_; }
  // The text so far, as long as no event was made.
  const std::string& taken() const { return taken_; }
  // Whether it has come to the arguments.
  bool has_arguments() const { return arguments_ != nullptr; }

 private:
  bool step(std::string_view text, bool is_final, size_t& bytes);
  bool take_literal(std::string_view text, bool is_final, size_t& bytes);
  bool take_name(std::string_view text, bool is_final, size_t& bytes);
  bool find_name_in_id();
  bool take_word(std::string_view text, bool is_final, size_t& bytes);
  bool take_arguments(std::string_view text, bool is_final, size_t& bytes);
  bool refuse() {
    state_ = State::refused;
    return false;
  }
  void skip_optional();
  bool is_at_end() const { return piece_ == format_.pieces.size(); }
  // Whether the beginning of the call can be told.
  bool is_known() const;
  std::string_view next_literal() const;

  const CallFormat& format_;
  const ToolSet& tools_;
  size_t index_;
  size_t skipped_;
  State state_ = State::running;
  size_t piece_ = 0;
  std::string taken_;
  const Tool* tool_ = nullptr;
  std::string id_;
  bool has_begun_ = false;  // told
  std::unique_ptr<ArgumentsReader> arguments_;
  std::string json_;  // of the arguments, as far as it isn't told
};

}  // namespace paceline
