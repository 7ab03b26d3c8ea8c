#include "tokenizer/sentence_piece_file.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/vocabulary.h"

namespace paceline {
namespace {

// Reads the wire format of Protocol Buffers, one field after another.
class WireReader {
 public:
  WireReader(std::string_view bytes, size_t begin, std::string_view where)
      : bytes_(bytes), begin_(begin), where_(where) {}

  // Moves to the next field; false at the end.
  bool next() {
    if (at_ == bytes_.size()) return false;
    const uint64_t key = varint();
    field_ = key >> 3;
    type_ = static_cast<unsigned>(key & 7);
    if (field_ == 0 || field_ >= (uint64_t{1} << 29)) fail("no field's number");
    value_ = type_ == 0 ? varint() : 0;
    if (type_ == 1) content_ = take(8);
    if (type_ == 5) content_ = take(4);
    if (type_ == 2) content_ = take(varint());
    if (type_ != 0 && type_ != 1 && type_ != 2 && type_ != 5) fail("no type of a field");
    return true;
  }

  uint64_t field() const { return field_; }
  uint64_t number() const {
    expect(0, "a number");
    return value_;
  }
  bool flag() const { return number() != 0; }
  // Numbers of 32 bits are written with the sign's bits up to 64.
  int64_t signed_number() const { return static_cast<int64_t>(number()); }
  float real() const {
    expect(5, "a float");
    float value = 0;
    std::memcpy(&value, content_.data(), sizeof(value));
    return value;
  }
  std::string_view text() const {
    expect(2, "a text");
    return content_;
  }
  WireReader message() const {
    expect(2, "a message");
    return {content_, begin_ + at_ - content_.size(), where_};
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw Error(ErrorCode::corrupt, fmt::format("{}: byte {}: {}, expected sentencepiece's model",
                                                where_, begin_ + at_, what));
  }

 private:
  void expect(unsigned type, std::string_view what) const {
    if (type_ != type) fail(fmt::format("field {} isn't {}", field_, what));
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) fail("the file ends in a number");
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    fail("a number of more than 64 bits");
  }

  std::string_view take(uint64_t size) {
    if (size > bytes_.size() - at_) {
      fail(fmt::format("a field of {} bytes, {} are left", size, bytes_.size() - at_));
    }
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }

  std::string_view bytes_;
  size_t begin_;  // of bytes_ in the file
  std::string_view where_;
  size_t at_ = 0;
  uint64_t field_ = 0;
  unsigned type_ = 0;
  uint64_t value_ = 0;
  std::string_view content_;
};

SentencePieceFile::Piece parse_piece(WireReader reader) {
  SentencePieceFile::Piece piece;
  while (reader.next()) {
    if (reader.field() == 1) {
      piece.text = reader.text();
      if (!is_valid_utf8(piece.text)) reader.fail("a piece that isn't valid UTF-8");
    } else if (reader.field() == 2) {
      piece.score = reader.real();
      if (!std::isfinite(piece.score)) reader.fail("a score that isn't finite");
    } else if (reader.field() == 3) {
      const uint64_t type = reader.number();
      if (type < 1 || type > 6) reader.fail(fmt::format("type {} of a piece", type));
      piece.type = static_cast<SentencePieceFile::Type>(type);
    }
  }
  return piece;
}

void parse_trainer(WireReader reader, SentencePieceFile& file) {
  while (reader.next()) {
    switch (reader.field()) {
      case 3: {
        const uint64_t kind = reader.number();
        if (kind < 1 || kind > 4) reader.fail(fmt::format("model_type {}", kind));
        file.kind = static_cast<SentencePieceFile::Kind>(kind);
        break;
      }
      case 24:
        file.whitespace_as_suffix = reader.flag();
        break;
      case 35:
        file.byte_fallback = reader.flag();
        break;
      case 40:
        file.unknown_id = reader.signed_number();
        break;
      case 41:
        file.bos_id = reader.signed_number();
        break;
      case 42:
        file.eos_id = reader.signed_number();
        break;
      case 43:
        file.pad_id = reader.signed_number();
        break;
      default:
        break;
    }
  }
}

void parse_normalizer(WireReader reader, SentencePieceFile& file) {
  while (reader.next()) {
    if (reader.field() == 2) file.charsmap = reader.text();
    if (reader.field() == 3) file.add_dummy_prefix = reader.flag();
    if (reader.field() == 4) file.remove_extra_whitespaces = reader.flag();
    if (reader.field() == 5) file.escape_whitespaces = reader.flag();
  }
}

bool has_charsmap(WireReader reader) {
  bool found = false;
  while (reader.next()) found = found || (reader.field() == 2 && !reader.text().empty());
  return found;
}

}  // namespace

SentencePieceFile parse_sentence_piece_file(std::string_view bytes, std::string_view where) {
  SentencePieceFile file;
  WireReader reader(bytes, 0, where);
  while (reader.next()) {
    if (reader.field() == 1) file.pieces.push_back(parse_piece(reader.message()));
    if (reader.field() == 2) parse_trainer(reader.message(), file);
    if (reader.field() == 3) parse_normalizer(reader.message(), file);
    if (reader.field() == 5) file.denormalizes = has_charsmap(reader.message());
    if (static_cast<int64_t>(file.pieces.size()) > kMaxTokenIds) {
      throw Error(ErrorCode::exhausted,
                  fmt::format("{}: more than {} pieces", where, kMaxTokenIds));
    }
  }
  if (file.pieces.empty()) {
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: no pieces, expected sentencepiece's model", where));
  }
  return file;
}

}  // namespace paceline
