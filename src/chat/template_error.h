// Errors of templates and their positions.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "paceline/error.h"

namespace paceline {

struct TemplatePosition {
  uint32_t line = 0;    // from 1; 0: not known yet
  uint32_t column = 0;  // from 1, in code points
};

// Thrown inside the interpreter, which adds the position; ChatTemplate adds the name.
class TemplateError : public std::runtime_error {
 public:
  explicit TemplateError(const std::string& message, ErrorCode code = ErrorCode::invalid)
      : std::runtime_error(message), code_(code) {}
  // With a message that fmt makes.
  template <class Arg, class... Args>
  requires(!std::is_same_v<std::remove_cvref_t<Arg>, ErrorCode>)
      TemplateError(fmt::format_string<Arg, Args...> message, Arg&& arg, Args&&... args)
      : TemplateError(fmt::format(message, std::forward<Arg>(arg), std::forward<Args>(args)...)) {}
  TemplateError(TemplatePosition position, const std::string& message,
                ErrorCode code = ErrorCode::invalid)
      : std::runtime_error(message), code_(code), position_(position) {}

  ErrorCode code() const { return code_; }
  TemplatePosition position() const { return position_; }
  void set_position(TemplatePosition position) {
    if (position_.line == 0) position_ = position;
  }

 private:
  ErrorCode code_;
  TemplatePosition position_;
};

// Python's %, str.format and |format, which published chat templates don't use.
[[noreturn]] inline void refuse_formatting(const std::string& form) {
  throw TemplateError(form +
                          " isn't supported: join the parts with ~, and pad them with center, "
                          "ljust, rjust or zfill",
                      ErrorCode::unsupported);
}

// Thrown by the template's raise_exception.
class RaisedByTemplate : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace paceline
