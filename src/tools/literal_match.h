// Matches what a template writes against what a model wrote, where blanks may differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace paceline {

struct LiteralMatch {
  enum class State : uint8_t { matched, partial, mismatch };
  State state = State::mismatch;
  size_t bytes = 0;  // of the text, when matched
};

// Whether `text` begins with `literal`, both without their blanks. Behind its last other byte the
// literal's blanks are taken as far as the text has the same ones. Partial: more text decides; of a
// text that `is_final` there is none.
LiteralMatch match_literal(std::string_view text, std::string_view literal, bool is_final);

}  // namespace paceline
