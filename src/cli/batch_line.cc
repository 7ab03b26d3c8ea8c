#include "cli/batch_line.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "base/json_writer.h"
#include "protocol/request_reader.h"
#include "protocol/response.h"

namespace paceline {
namespace {

constexpr uint64_t kMaxCustomIdBytes = 512;
constexpr std::array<std::pair<std::string_view, const Dialect*>, 4> kUrls = {{
    {"/v1/completions", &kCompletionDialect},
    {"/v1/chat/completions", &kChatDialect},
    {"/v1/classify", &kClassificationDialect},
    {"/v1/embeddings", &kEmbeddingDialect},
}};

void read_method(const FieldValue& value, BatchLine&) {
  if (value.text() == "POST") return;
  throw RequestError("method", ErrorReason::invalid_method,
                     fmt::format("method: found {}, expected POST", json_quote(value.text())));
}

void read_url(const FieldValue& value, BatchLine& line) {
  for (const auto& [url, dialect] : kUrls) {
    if (value.text() == url) {
      line.dialect = dialect;
      return;
    }
  }
  throw RequestError("url", ErrorReason::invalid_url,
                     fmt::format("url: found {}, expected /v1/completions, /v1/chat/completions, "
                                 "/v1/classify or /v1/embeddings",
                                 json_quote(value.text())));
}

constexpr FieldDef<BatchLine> kFields[] = {
    required("custom_id", text_type(1, kMaxCustomIdBytes),
             "The request's name, unique in the file.", store<&BatchLine::custom_id>),
    required("method", kAnyText, "POST.", read_method),
    required("url", kAnyText, "The endpoint.", read_url),
    required("body", kAnyObject, "The request.", store<&BatchLine::body>),
};

void read_fields(const Line& text, const std::string& where, BatchLine& line) {
  if (text.is_too_long) {
    throw error_of(ErrorCode::invalid, "{}: longer than {} bytes, the most a line may have", where,
                   kMaxLineBytes);
  }
  const Json json = parse_json_line(text.text, where);
  const RequestTerms terms;
  RequestReader reader(json, terms);
  reader.read<BatchLine>(kFields, line);
  reader.finish();
}

void begin_record(JsonWriter& writer, const std::string& custom_id) {
  writer.begin_object().member("id", random_id("batch_req_")).key("custom_id");
  custom_id.empty() ? writer.null() : writer.string(custom_id);
  writer.key("response");
}

}  // namespace

BatchLine read_batch_line(const Line& line) {
  BatchLine read{.number = line.number};
  const std::string where = fmt::format("line {}", line.number);
  try {
    read_fields(line, where, read);
  } catch (const RequestError& error) {
    set_line_error(read, std::string(openai_kind(error.reason()).code), error.what());
  } catch (const Error& error) {
    read.error = BatchLineError{.code = "invalid_json_line", .message = error.what()};
  }
  return read;
}

void set_line_error(BatchLine& line, std::string code, const std::string& message) {
  line.error = BatchLineError{.code = std::move(code),
                              .message = fmt::format("line {}: {}", line.number, message)};
}

std::string batch_response_record(const std::string& custom_id, int status, std::string_view body) {
  std::string json;
  JsonWriter writer(json);
  begin_record(writer, custom_id);
  writer.begin_object().member("status_code", status).member("request_id", random_id("req_"));
  writer.key("body").raw(body).end_object();
  writer.key("error").null().end_object();
  return json + "\n";
}

std::string batch_error_record(const BatchLine& line) {
  std::string json;
  JsonWriter writer(json);
  begin_record(writer, line.custom_id);
  writer.null().key("error").begin_object();
  writer.member("code", line.error->code).member("message", line.error->message);
  writer.member("line", line.number).end_object().end_object();
  return json + "\n";
}

}  // namespace paceline
