// CodeSource is the integer codes of a matrix, unpacked row by row from the way a format packs
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "tensor/tensor.h"

namespace paceline {

// Several threads may read rows at once. The tensors that it views must outlive it.
class CodeSource {
 public:
  virtual ~CodeSource() = default;

  virtual void read_row(int64_t row, std::span<uint8_t> codes) const = 0;
};

// How codes lie in a contiguous matrix of 32-bit words: lines of words hold codes one after
// another.
struct WordPacking {
  enum class Order : uint8_t {
    stream,  // from the lowest bit of a line's first word up; some cross into the next word
    awq,     // eight codes of 4 bits in a word, in the order 0, 2, 4, 6, 1, 3, 5, 7 from the lowest
  };
  enum class Lines : uint8_t { rows, columns };  // of the matrix of words
  // A row of codes is a line, or the codes at one place of all lines.
  enum class Rows : uint8_t { lines, places };

  int bits = 4;  // 1 to 8
  Order order = Order::stream;
  Lines lines = Lines::rows;
  Rows rows = Rows::lines;
};

// Every code that is read must lie within the words.
std::unique_ptr<CodeSource> codes_in_words(const Tensor& words, WordPacking packing);

// One byte for each: uint8, or int8 plus 128.  bytes [rows, row length]
std::unique_ptr<CodeSource> codes_in_bytes(const Tensor& bytes);

// Signed codes of 4 bits plus 8, two in a byte, the lower half first.
//   bytes [rows, row length / 2] of int8 or uint8
std::unique_ptr<CodeSource> codes_in_nibbles(const Tensor& bytes);

// Codes of 4 bits in the tiles of tinygemm: 8 rows of 128 columns, as 4 words for each of the 32
// lanes of a warp (matrix_to_m16n8k16_Bint4_layout of PyTorch's ATen/native/cuda/int4mm.cu).
//   words [row tiles, column tiles, 32, 4] of int32
std::unique_ptr<CodeSource> codes_in_tiles(const Tensor& words);
constexpr int64_t kWarpTileRows = 8;
constexpr int64_t kWarpTileColumns = 128;

// Numbers E2M1, two in a byte, the lower half first: a code is 12 plus twice the number.
//   bytes [rows, row length / 2] of uint8
std::unique_ptr<CodeSource> e2m1_codes(const Tensor& bytes);
constexpr int kE2m1Zero = 12;

}  // namespace paceline
