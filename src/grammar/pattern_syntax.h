// The syntax tree of a regular expression.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/code_points.h"

namespace paceline {

struct PatternNode {
  enum class Kind : uint8_t {
    characters,  // one of `characters`
    sequence,    // the children one after the other; without any, the empty text
    choice,      // one of the children
    repeat,      // the only child, min to max times
    begin,       // ^
    end,         // $
    look_ahead,  // the only child matches from here on
    look_not,    // the only child doesn't
  };
  Kind kind = Kind::sequence;
  // Of this node or below; anchors and characters inside of look-ahead don't count.
  bool has_anchors = false;
  bool has_looks = false;
  bool reads = false;  // has characters
  CodePointRanges characters;
  std::vector<PatternNode> children;
  uint32_t min = 0;
  uint32_t max = 0;  // kUnbounded is no limit
};

// Errors as those of parse_pattern.
PatternNode parse_pattern_syntax(std::string_view pattern);

}  // namespace paceline
