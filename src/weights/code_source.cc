#include "weights/code_source.h"

#include <array>

#include "base/error.h"

namespace paceline {
namespace {

constexpr int kBitsOfWord = 32;
// The place of each of eight columns in a word of AWQ.
constexpr std::array<int, 8> kAwqPlaces = {0, 4, 1, 5, 2, 6, 3, 7};

// A code of a line of words.
struct WordPlace {
  int64_t word = 0;
  int shift = 0;
};

class WordCodes : public CodeSource {
 public:
  WordCodes(const Tensor& words, WordPacking packing)
      : words_(static_cast<const uint32_t*>(words.raw())), packing_(packing) {
    PL_CHECK(words.rank() == 2 && words.is_contiguous() && dtype_bytes(words.dtype()) == 4 &&
                 packing.bits >= 1 && packing.bits <= 8 &&
                 (packing.order == WordPacking::Order::stream || packing.bits == 4),
             "a matrix of words");
    const bool are_rows = packing.lines == WordPacking::Lines::rows;
    word_stride_ = are_rows ? 1 : words.size(1);
    line_stride_ = are_rows ? words.size(1) : 1;
  }

  void read_row(int64_t row, std::span<uint8_t> codes) const override {
    const auto count = static_cast<int64_t>(codes.size());
    if (packing_.rows == WordPacking::Rows::lines) {
      const uint32_t* const line = words_ + row * line_stride_;
      for (int64_t i = 0; i < count; ++i) codes[static_cast<size_t>(i)] = code_at(line, place(i));
      return;
    }
    const WordPlace same = place(row);
    for (int64_t i = 0; i < count; ++i) {
      codes[static_cast<size_t>(i)] = code_at(words_ + i * line_stride_, same);
    }
  }

 private:
  WordPlace place(int64_t index) const {
    if (packing_.order == WordPacking::Order::awq) {
      return {index / 8, 4 * kAwqPlaces[static_cast<size_t>(index % 8)]};
    }
    const int64_t bit = index * packing_.bits;
    return {bit / kBitsOfWord, static_cast<int>(bit % kBitsOfWord)};
  }

  uint8_t code_at(const uint32_t* line, WordPlace at) const {
    uint64_t held = line[at.word * word_stride_] >> at.shift;
    const int num_held = kBitsOfWord - at.shift;
    if (num_held < packing_.bits) held |= uint64_t{line[(at.word + 1) * word_stride_]} << num_held;
    return static_cast<uint8_t>(held & ((uint64_t{1} << packing_.bits) - 1));
  }

  const uint32_t* words_;
  WordPacking packing_;
  int64_t word_stride_ = 1;
  int64_t line_stride_ = 1;
};

class ByteCodes : public CodeSource {
 public:
  explicit ByteCodes(const Tensor& bytes)
      : bytes_(static_cast<const uint8_t*>(bytes.raw())),
        row_length_(bytes.size(-1)),
        flipped_(bytes.dtype() == DType::i8 ? 0x80 : 0) {
    PL_CHECK(bytes.is_contiguous() && dtype_bytes(bytes.dtype()) == 1, "a matrix of bytes");
  }

  void read_row(int64_t row, std::span<uint8_t> codes) const override {
    const uint8_t* from = bytes_ + row * row_length_;
    for (uint8_t& code : codes) code = static_cast<uint8_t>(*from++ ^ flipped_);
  }

 private:
  const uint8_t* bytes_;
  int64_t row_length_;
  uint8_t flipped_;
};

class NibbleCodes : public CodeSource {
 public:
  explicit NibbleCodes(const Tensor& bytes)
      : bytes_(static_cast<const uint8_t*>(bytes.raw())), row_bytes_(bytes.size(-1)) {
    PL_CHECK(bytes.is_contiguous() && dtype_bytes(bytes.dtype()) == 1, "a matrix of bytes");
  }

  void read_row(int64_t row, std::span<uint8_t> codes) const override {
    const uint8_t* from = bytes_ + row * row_bytes_;
    for (size_t i = 0; i + 1 < codes.size(); i += 2, ++from) {
      codes[i] = (*from & 0x0F) ^ 8;
      codes[i + 1] = (*from >> 4) ^ 8;
    }
  }

 private:
  const uint8_t* bytes_;
  int64_t row_bytes_;
};

// A lane has a row and, in every 8 columns, two neighbours. A word has those of two tiles of 16
// columns: the first of each pair in its lower half, the second in its upper one.
class TileCodes : public CodeSource {
 public:
  explicit TileCodes(const Tensor& words)
      : words_(static_cast<const uint32_t*>(words.raw())), tiles_of_row_(words.size(1)) {
    PL_CHECK(words.is_contiguous() && words.rank() == 4 && words.size(2) == kLanes &&
                 words.size(3) == kWords && dtype_bytes(words.dtype()) == 4,
             "tiles of words");
  }

  void read_row(int64_t row, std::span<uint8_t> codes) const override {
    const int64_t first = row / kWarpTileRows * tiles_of_row_;
    for (size_t i = 0; i < codes.size(); ++i) {
      const auto column = static_cast<int64_t>(i);
      const int64_t in_tile = column % kWarpTileColumns;
      const int64_t lane = row % kWarpTileRows * 4 + in_tile % 8 / 2;
      const int64_t word = in_tile / 32;
      const int64_t shift = in_tile % 2 * 16 + in_tile % 32 / 8 * 4;
      const int64_t tile = first + column / kWarpTileColumns;
      codes[i] = words_[(tile * kLanes + lane) * kWords + word] >> shift & 0x0F;
    }
  }

 private:
  static constexpr int64_t kLanes = 32;
  static constexpr int64_t kWords = 4;

  const uint32_t* words_;
  int64_t tiles_of_row_;
};

class E2m1Codes : public CodeSource {
 public:
  explicit E2m1Codes(const Tensor& bytes)
      : bytes_(static_cast<const uint8_t*>(bytes.raw())), row_bytes_(bytes.size(-1)) {
    PL_CHECK(bytes.is_contiguous() && bytes.dtype() == DType::u8, "a matrix of bytes");
  }

  void read_row(int64_t row, std::span<uint8_t> codes) const override {
    // 12 plus twice 0, 0.5, 1, 1.5, 2, 3, 4, 6, and the same with a sign.
    static constexpr std::array<uint8_t, 16> kCodes = {12, 13, 14, 15, 16, 18, 20, 24,
                                                       12, 11, 10, 9,  8,  6,  4,  0};
    const uint8_t* from = bytes_ + row * row_bytes_;
    for (size_t i = 0; i + 1 < codes.size(); i += 2, ++from) {
      codes[i] = kCodes[*from & 0x0F];
      codes[i + 1] = kCodes[*from >> 4];
    }
  }

 private:
  const uint8_t* bytes_;
  int64_t row_bytes_;
};

}  // namespace

std::unique_ptr<CodeSource> codes_in_words(const Tensor& words, WordPacking packing) {
  return std::make_unique<WordCodes>(words, packing);
}

std::unique_ptr<CodeSource> codes_in_bytes(const Tensor& bytes) {
  return std::make_unique<ByteCodes>(bytes);
}

std::unique_ptr<CodeSource> codes_in_nibbles(const Tensor& bytes) {
  return std::make_unique<NibbleCodes>(bytes);
}

std::unique_ptr<CodeSource> codes_in_tiles(const Tensor& words) {
  return std::make_unique<TileCodes>(words);
}

std::unique_ptr<CodeSource> e2m1_codes(const Tensor& bytes) {
  return std::make_unique<E2m1Codes>(bytes);
}

}  // namespace paceline
