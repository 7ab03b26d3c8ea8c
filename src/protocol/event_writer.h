// EventWriter: what the streams of OpenAI's older APIs, llama.cpp's and Paceline's have in common:
// server-sent events without names, and an error that ends a broken stream.
#pragma once

#include <string>
#include <string_view>

#include "protocol/dialect.h"

namespace paceline {

// What all chunks of a stream have in common.
struct ChunkStyle {
  TokenNaming naming = TokenNaming::text;
  bool has_usage = false;         // "usage": null, because the last chunk will have it
  bool as_probabilities = false;  // in /generate: "completion_probabilities" for "logprobs"
};

class EventWriter : public ChoiceWriter {
 public:
  EventWriter(std::string_view id_prefix, const ChunkStyle& style)
      : style_(style), id_prefix_(id_prefix) {}

  std::string_view id_prefix() const override { return id_prefix_; }
  void begin(const AnswerStart& start, std::string& /*out*/) override { head_ = start.head; }
  void fail(const ApiError& error, std::string& out) override {
    append_event(error_json(error), out);
  }

 protected:
  static void append_event(std::string_view json, std::string& out) {
    out.append("data: ").append(json).append("\n\n");
  }
  // An event with one choice; `write_body` writes the members between its index and its end.
  template <class WriteBody>
  void choice_event(std::string_view object, const ResponseChunk& chunk, std::string& out,
                    const WriteBody& write_body) {
    out += "data: ";
    JsonWriter writer(out);
    writer.begin_object();
    write_head(writer, head_, object);
    head_.warnings.clear();  // the first chunk has them
    writer.key("choices").begin_array().begin_object().member("index", chunk.index);
    write_body(writer);
    write_chunk_end(writer, chunk);
    writer.end_object().end_array();
    if (chunk.usage) {
      write_usage(writer, *chunk.usage);
    } else if (style_.has_usage) {
      writer.key("usage").null();
    }
    writer.end_object();
    out += "\n\n";
  }

  // The usage if it was asked for, then the last event.
  void finish(std::string_view object, const ResponseUsage& usage, std::string& out) const {
    if (style_.has_usage) {
      const std::string json = object_json([&](JsonWriter& writer) {
        write_head(writer, head_, object);
        writer.key("choices").begin_array().end_array();
        write_usage(writer, usage);
      });
      append_event(json, out);
    }
    append_event("[DONE]", out);
  }

  ResponseHead head_;
  ChunkStyle style_;

 private:
  std::string_view id_prefix_;
};

}  // namespace paceline
