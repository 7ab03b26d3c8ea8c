#include "protocol/response_chunk.h"

#include "protocol/logprobs_json.h"

namespace paceline {
namespace {

void finish_chunk(JsonWriter& writer, const ResponseChunk& chunk, const ChunkStyle& style) {
  writer.end_object().end_array();
  if (chunk.usage) {
    write_usage(writer, *chunk.usage);
  } else if (style.has_usage) {
    writer.key("usage").null();
  }
  writer.end_object();
}

void write_pieces(JsonWriter& writer, const std::vector<TextPiece>& pieces) {
  writer.key("pieces").begin_array();
  for (const TextPiece& piece : pieces) {
    writer.begin_object().member("text", piece.text).member("accepted", piece.is_accepted);
    writer.end_object();
  }
  writer.end_array();
}

void write_delta(JsonWriter& writer, const TurnDelta& delta, std::string_view reasoning_field) {
  if (!delta.reasoning.empty()) writer.member(reasoning_field, delta.reasoning);
  if (!delta.content.empty()) writer.member("content", delta.content);
  if (!delta.call_index) return;
  writer.key("tool_calls").begin_array().begin_object();
  writer.member("index", static_cast<int64_t>(*delta.call_index));
  if (delta.begins_call) writer.member("id", delta.call_id).member("type", "function");
  writer.key("function").begin_object();
  if (delta.begins_call) writer.member("name", delta.call_name);
  writer.member("arguments", delta.arguments).end_object().end_object().end_array();
}

}  // namespace

void write_chunk_end(JsonWriter& writer, const ResponseChunk& chunk) {
  if (!chunk.pieces.empty()) write_pieces(writer, chunk.pieces);
  if (chunk.ending == nullptr) {
    writer.key("finish_reason").null();
    if (chunk.token_ids) write_token_ids(writer, *chunk.token_ids);
    return;
  }
  ResponseChoice ending = *chunk.ending;
  ending.token_ids = chunk.token_ids;
  write_choice_end(writer, ending);
}

std::string completion_chunk_json(const ResponseHead& head, const ResponseChunk& chunk,
                                  const ChunkStyle& style) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object();
  write_head(writer, head, kCompletionChunkObject);
  writer.key("choices").begin_array().begin_object().member("index", chunk.index).key("text");
  chunk.text ? writer.string(*chunk.text) : writer.null();
  writer.key("logprobs");
  if (chunk.logprobs) {
    write_completion_logprobs(writer, *chunk.logprobs, chunk.named_text, style.naming,
                              chunk.text_offset);
  } else {
    writer.null();
  }
  write_chunk_end(writer, chunk);
  finish_chunk(writer, chunk, style);
  return json;
}

std::string chat_chunk_json(const ResponseHead& head, const ResponseChunk& chunk,
                            const ChunkStyle& style) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object();
  write_head(writer, head, kChatChunkObject);
  writer.key("choices").begin_array().begin_object().member("index", chunk.index);
  writer.key("delta").begin_object();
  if (chunk.has_role) writer.member("role", "assistant");
  if (chunk.turn != nullptr) {
    write_delta(writer, *chunk.turn, head.reasoning_field);
  } else if (chunk.text && (chunk.has_role || !chunk.text->empty())) {
    writer.member("content", *chunk.text);
  }
  writer.end_object();
  write_chat_choice_logprobs(writer, chunk.logprobs, style.naming);
  write_chunk_end(writer, chunk);
  finish_chunk(writer, chunk, style);
  return json;
}

std::string usage_chunk_json(const ResponseHead& head, std::string_view object,
                             const ResponseUsage& usage) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object();
  write_head(writer, head, object);
  writer.key("choices").begin_array().end_array();
  write_usage(writer, usage);
  writer.end_object();
  return json;
}

}  // namespace paceline
