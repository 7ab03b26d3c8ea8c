// The layout of a file of prepared weights: a head, a table, sums, and the parts as in memory.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/siphash.h"
#include "prepared/part.h"

namespace paceline {

// The head (little-endian) is followed by the table (JSON), zeros up to a multiple of eight, the
// sums, and zeros up to the first part. Parts follow, each aligned to 64 bytes and padded with
// zeros. A sum covers a piece of one part. Every byte of the file is covered by a sum.
struct PreparedHead {
  uint64_t magic = 0;
  uint64_t file_bytes = 0;
  uint64_t table_bytes = 0;  // without the zeros
  uint64_t num_sums = 0;     // of pieces
  uint64_t first_part = 0;   // its offset
  uint64_t front_sum = 0;    // of all bytes between the head and the first part
  uint64_t unused = 0;       // zero
  uint64_t head_sum = 0;     // of the seven fields above
};
static_assert(sizeof(PreparedHead) == 64 && std::endian::native == std::endian::little);

// "PLWEIGH" and the version of this layout.
constexpr uint64_t kPreparedMagic = 0x0148474945574C50;
constexpr uint64_t kPieceBytes = 1 << 20;
constexpr uint64_t kPartAlignment = 64;
constexpr uint64_t kFirstPartAlignment = 4096;  // a page

constexpr uint64_t rounded_up(uint64_t bytes, uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}
constexpr uint64_t stored_bytes(uint64_t part_bytes) {
  return rounded_up(part_bytes, kPartAlignment);
}
constexpr uint64_t num_pieces(uint64_t part_bytes) {
  return rounded_up(stored_bytes(part_bytes), kPieceBytes) / kPieceBytes;
}

// The seeds of the sums of head and front; pieces have their index.
constexpr uint64_t kHeadSeed = ~uint64_t{0};
constexpr uint64_t kFrontSeed = kHeadSeed - 1;

uint64_t sum_of_head(const PreparedHead& head);

// The contents of the table; the parts have no bytes yet.
struct PreparedTable {
  std::string key;  // identifies the model's files and settings
  Hash128 digest;   // of the stored bytes that they were made from
  PreparedWeights weights;
};

std::string write_table(const PreparedTable& table);
// Throws Error "WHERE: ..." for a malformed table or impossible parts.
PreparedTable read_table(std::string_view json, std::string_view where);

}  // namespace paceline
