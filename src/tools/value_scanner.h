// ValueScanner finds the end of an object or array in a text that arrives in pieces.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tools/turn_format.h"

namespace paceline {

// Follows brackets and strings, which is all that the end depends on; nested at most 64 deep.
class ValueScanner {
 public:
  enum class State : uint8_t { running, done, broken };

  explicit ValueScanner(StringNotation strings = ValueNotation{}.strings)
      : strings_(std::move(strings)) {}

  // Takes bytes up to the bracket that closes the first one and returns their number. Broken: the
  // byte behind them can't follow.
  size_t take(std::string_view text);
  State state() const { return state_; }

 private:
  void take_byte(char c);
  void take_in_string(char c);
  bool opens_string(char c);

  StringNotation strings_;
  State state_ = State::running;
  std::string open_;    // the closing brackets to come
  std::string quote_;   // that ends the current string; empty: outside of strings
  size_t matched_ = 0;  // bytes of the quote that is being read
  bool is_escaped_ = false;
};

// The bytes of the object or array at the beginning of `text`; 0: there is none.
size_t json_container_bytes(std::string_view text);

}  // namespace paceline
