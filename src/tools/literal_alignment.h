// Compares what a template writes around two calls that follow one another, where numbers count the
// calls: `"tool_call_id": "0"` and `"tool_call_id": "1"`.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/turn_format.h"

namespace paceline {

// The bytes of both texts that have units in common; a number and the next one count as common.
struct CommonBytes {
  size_t first = 0;
  size_t second = 0;
};
CommonBytes aligned_prefix(std::string_view first, std::string_view second);
CommonBytes aligned_suffix(std::string_view first, std::string_view second);

// Literals, and an index for each number that counts; nothing when the texts differ otherwise.
std::optional<std::vector<CallPiece>> aligned_pieces(std::string_view first,
                                                     std::string_view second);

// Appends a piece; a literal behind a literal becomes one with it.
void append_piece(std::vector<CallPiece>& pieces, CallPiece piece);

}  // namespace paceline
