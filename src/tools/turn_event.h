// What a model's turn consists of, as it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace paceline {

struct TurnEvent {
  enum class Kind : uint8_t {
    reasoning,   // a piece of it, in `text`
    content,     // the same
    call_begun,  // with `id` and `name`
    arguments,   // a piece of the call's arguments as JSON, in `text`
    call_ended,
  };
  Kind kind = Kind::content;
  std::string text = {};
  size_t call_index = 0;  // of the last three, from 0 on
  std::string id = {};
  std::string name = {};
  // Of call_ended: false where the text ended, or went on otherwise, within the call. The arguments
  // may then be no JSON.
  bool is_complete = true;

  bool operator==(const TurnEvent&) const = default;
};

}  // namespace paceline
