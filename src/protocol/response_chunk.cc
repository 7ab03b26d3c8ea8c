#include "protocol/response_chunk.h"

namespace paceline {
namespace {

void write_pieces(JsonWriter& writer, const std::vector<TextPiece>& pieces) {
  writer.key("pieces").begin_array();
  for (const TextPiece& piece : pieces) {
    writer.begin_object().member("text", piece.text).member("accepted", piece.is_accepted);
    writer.end_object();
  }
  writer.end_array();
}

}  // namespace

void write_chunk_end(JsonWriter& writer, const ResponseChunk& chunk) {
  if (!chunk.pieces.empty()) write_pieces(writer, chunk.pieces);
  if (chunk.ending == nullptr) {
    writer.key("finish_reason").null();
    if (chunk.token_ids) writer.member("token_ids", *chunk.token_ids);
    return;
  }
  ResponseChoice ending = *chunk.ending;
  ending.token_ids = chunk.token_ids;
  write_choice_end(writer, ending);
}

}  // namespace paceline
