// EventWriter: what the streams of OpenAI's older APIs, llama.cpp's and Paceline's have in common:
// server-sent events without names, and an error that ends a broken stream.
#pragma once

#include <string>
#include <string_view>

#include "protocol/dialect.h"

namespace paceline {

inline void append_event(std::string_view json, std::string& out) {
  out.append("data: ").append(json).append("\n\n");
}

class EventWriter : public ChoiceWriter {
 public:
  explicit EventWriter(std::string_view id_prefix) : id_prefix_(id_prefix) {}

  std::string_view id_prefix() const override { return id_prefix_; }
  void begin(const AnswerStart& start, std::string& /*out*/) override { head_ = start.head; }
  void fail(const ApiError& error, std::string& out) override {
    append_event(error_json(error), out);
  }

 protected:
  // The usage if it was asked for, then the last event.
  void finish(std::string_view object, const ChunkStyle& style, const ResponseUsage& usage,
              std::string& out) const {
    if (style.has_usage) append_event(usage_chunk_json(head_, object, usage), out);
    append_event("[DONE]", out);
  }

  ResponseHead head_;

 private:
  std::string_view id_prefix_;
};

}  // namespace paceline
