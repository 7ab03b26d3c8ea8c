// A line of a batch's input: {"custom_id", "method", "url", "body"}, as in OpenAI's batch files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/line_reader.h"
#include "protocol/dialect.h"

namespace paceline {

// The error of a malformed line; errors of its request are not among them.
struct BatchLineError {
  std::string code;     // "invalid_json_line", "invalid_url", ...
  std::string message;  // with the line's number
};

struct BatchLine {
  int64_t number = 0;
  std::string custom_id;             // empty when it couldn't be read
  const Dialect* dialect = nullptr;  // of the URL
  Json body;
  std::optional<BatchLineError> error;
};

BatchLine read_batch_line(const Line& line);

// Replaces the line's request by the error "line N: MESSAGE".
void set_line_error(BatchLine& line, std::string code, const std::string& message);

// A line of the output: the response to a request ...
std::string batch_response_record(const std::string& custom_id, int status, std::string_view body);
// ... or the error of the line, with its number.
std::string batch_error_record(const BatchLine& line);

}  // namespace paceline
