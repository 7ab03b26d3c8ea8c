// SentencePieceFile: the contents of a tokenizer.model, sentencepiece's ModelProto.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// The fields of sentencepiece_model.proto that encoding and decoding depend on, with its defaults.
struct SentencePieceFile {
  enum class Type : uint8_t { normal = 1, unknown, control, user_defined, unused, byte };
  enum class Kind : uint8_t { unigram = 1, bpe, word, character };

  struct Piece {
    std::string text;  // well-formed UTF-8
    float score = 0;
    Type type = Type::normal;
  };

  std::vector<Piece> pieces;  // by id
  Kind kind = Kind::unigram;
  bool byte_fallback = false;
  bool whitespace_as_suffix = false;
  int64_t unknown_id = 0;
  int64_t bos_id = 1;
  int64_t eos_id = 2;
  int64_t pad_id = -1;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  std::string charsmap;       // of the normaliser; empty: none
  bool denormalizes = false;  // decoded texts have a map, too
};

// Parses the bytes of a file; `where` names it in errors. Throws Error corrupt "WHERE: byte N: ..."
// for bytes that aren't such a message, exhausted for more pieces than a tokenizer may have.
SentencePieceFile parse_sentence_piece_file(std::string_view bytes, std::string_view where);

}  // namespace paceline
