// Reads the arguments of a call, as the model writes them, and writes them as JSON while they
// arrive.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tools/tool_set.h"
#include "tools/turn_format.h"

namespace paceline {

class ArgumentsReader {
 public:
  enum class State : uint8_t { running, done, broken };

  virtual ~ArgumentsReader() = default;
  // Takes what it can from the beginning of `text`, appends JSON to `out` and returns the number of
  // bytes that it took. With `is_final` no more text comes. Not called again when done or broken.
  virtual size_t take(std::string_view text, bool is_final, std::string& out) = 0;

  State state() const { return state_; }
  // Whether what it took can be nothing but arguments.
  virtual bool has_begun() const = 0;

 protected:
  State state_ = State::running;
};

// `tool`: whose arguments they are; null: any. `next` is the literal that follows the arguments.
// What is given must outlive the reader.
std::unique_ptr<ArgumentsReader> make_arguments_reader(const ArgumentsFormat& format,
                                                       const Tool* tool, std::string_view next);
// Of arguments as keys and values.
std::unique_ptr<ArgumentsReader> make_parameters_reader(const ArgumentsFormat& format,
                                                        const Tool* tool, std::string_view next);

}  // namespace paceline
