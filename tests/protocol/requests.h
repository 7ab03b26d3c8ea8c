// Requests written as text, and the errors of malformed ones.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "protocol/api_error.h"
#include "protocol/chat_request.h"
#include "protocol/classification_request.h"
#include "protocol/completion_request.h"
#include "protocol/dialect.h"

namespace paceline {

inline CompletionRequest completion(std::string_view body) {
  return parse_completion_request(parse_json(body, "body"));
}
inline ChatRequest chat(std::string_view body) {
  return parse_chat_request(parse_json(body, "body"));
}
inline ClassificationRequest classification(std::string_view body) {
  return parse_classification_request(parse_json(body, "body"));
}

// What writes the answer to a body.
inline std::unique_ptr<ChoiceWriter> writer_of(const Dialect& dialect, std::string_view body) {
  static const RequestTerms terms;
  return std::get<GenerationCall>(dialect.parse(parse_json(body, "body"), {.limits = terms}))
      .writer;
}
// The JSON of the event of a chunk.
inline std::string event_json(const Dialect& dialect, std::string_view body,
                              const ResponseHead& head, const ResponseChunk& chunk) {
  const auto writer = writer_of(dialect, body);
  std::string out;
  writer->begin({.head = head, .num_choices = 0}, out);
  writer->chunk(chunk, out);
  constexpr std::string_view kBegin = "data: ", kEnd = "\n\n";
  EXPECT_TRUE(out.starts_with(kBegin) && out.ends_with(kEnd)) << out;
  return out.substr(kBegin.size(), out.size() - kBegin.size() - kEnd.size());
}

// The required fields, then `members`.
inline std::string completion_body(std::string_view members) {
  return R"({"prompt": "x", )" + std::string(members) + "}";
}
inline std::string chat_body(std::string_view members) {
  return R"({"messages": [{"role": "user", "content": "x"}], )" + std::string(members) + "}";
}
inline std::string classification_body(std::string_view members) {
  return R"({"input": "x", )" + std::string(members) + "}";
}
// One message.
inline std::string message_body(std::string_view message) {
  return R"({"messages": [{"role": "user", "content": "x"}, )" + std::string(message) + "]}";
}

// The error that parsing throws; fails the test when it throws none.
template <class Parse>
ApiError refusal(Parse&& parse, const std::string& body) {
  try {
    parse(body);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid) << error.what();
    return api_error(error);
  }
  ADD_FAILURE() << "accepted: " << body;
  return {};
}

inline std::string_view code_of(const ApiError& error) { return openai_kind(error.reason).code; }

}  // namespace paceline
