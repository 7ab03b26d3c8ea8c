// The answers of Anthropic's API, as bytes.
#include <gmock/gmock.h>

#include "protocol/dialect.h"
#include "tests/protocol/requests.h"

namespace paceline::anthropic {
namespace {

using testing::HasSubstr;
using testing::Not;

const Seal& test_seal() {
  static const Seal seal(Seal::Key{7});
  return seal;
}

std::unique_ptr<ChoiceWriter> writer_of(const std::string& members = "") {
  static const RequestTerms limits;
  const Json body = parse_json(
      R"({"max_tokens": 9, "messages": [{"role": "user", "content": "x"}])" + members + "}",
      "body");
  Call call = kMessagesDialect.parse(body, {.limits = limits, .owner = "k", .seal = &test_seal()});
  return std::move(std::get<GenerationCall>(call).writer);
}

std::string signature_of(std::string_view reasoning) {
  return test_seal().close(reasoning, {.purpose = "thinking", .owner = "k"});
}

ResponseHead head() { return {.id = "msg_1", .model = "m", .system_fingerprint = {}}; }

constexpr ResponseUsage kUsage = {.prompt_tokens = 100,
                                  .completion_tokens = 9,
                                  .cached_tokens = 96,
                                  .reasoning_tokens = std::nullopt};

std::string whole(const ResponseChoice& choice, const std::string& members = "",
                  const ResponseUsage& usage = kUsage) {
  return writer_of(members)->whole({.head = head(), .choices = {choice}, .usage = usage});
}

TEST(AnthropicDialect, AWholeMessage) {
  EXPECT_EQ(whole({.text = "Hi", .finish_reason = "stop"}),
            R"({"id":"msg_1","type":"message","role":"assistant","model":"m",)"
            R"("content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn",)"
            R"("stop_sequence":null,"usage":{"input_tokens":4,"cache_creation_input_tokens":0,)"
            R"("cache_read_input_tokens":96,"output_tokens":9}})");
}

TEST(AnthropicDialect, BlocksOfAWholeMessage) {
  const TurnParts turn{.reasoning = "hm",
                       .content = "I look",
                       .tool_calls = {{.id = "toolu_1", .name = "look", .arguments = R"({"a":1})"},
                                      {.id = "toolu_2", .name = "cut", .arguments = R"({"a":)"}}};
  const ResponseChoice choice{.turn = turn, .finish_reason = "tool_calls"};
  EXPECT_THAT(whole(choice),
              HasSubstr(R"("content":[{"type":"thinking","thinking":"hm","signature":")" +
                        signature_of("hm") +
                        R"("},{"type":"text","text":"I look"},{"type":"tool_use","id":"toolu_1",)"
                        R"("name":"look","input":{"a":1}}],"stop_reason":"tool_use")"));
  EXPECT_THAT(whole(choice, R"(, "thinking": {"type": "adaptive", "display": "omitted"})"),
              HasSubstr(R"("thinking":"","signature":"pls1_)"));
}

TEST(AnthropicDialect, StopReasons) {
  const auto stop = [](const ResponseChoice& choice, int64_t completion_tokens = 9) {
    const std::string json =
        whole(choice, "", {.prompt_tokens = 1, .completion_tokens = completion_tokens});
    const Json answer = parse_json(json, "answer");
    return *answer.find("stop_reason")->string();
  };
  EXPECT_EQ(stop({.finish_reason = "length"}), "max_tokens");
  EXPECT_EQ(stop({.finish_reason = "length"}, 5), "model_context_window_exceeded");
  EXPECT_EQ(stop({.finish_reason = "stop", .stop_reason = 7}), "end_turn");
  EXPECT_EQ(stop({.finish_reason = "stop", .stop_reason = "END"}), "stop_sequence");
  EXPECT_THAT(whole({.finish_reason = "stop", .stop_reason = "END"}),
              HasSubstr(R"("stop_sequence":"END")"));
}

std::string start_event(int64_t input_tokens, int64_t cached_tokens) {
  return std::string("event: message_start\ndata: ") +
         R"({"type":"message_start","message":{"id":"msg_1","type":"message",)" +
         R"("role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,)" +
         R"("usage":{"input_tokens":)" + std::to_string(input_tokens) +
         R"(,"cache_creation_input_tokens":0,"cache_read_input_tokens":)" +
         std::to_string(cached_tokens) + R"(,"output_tokens":0}}})" + "\n\n";
}

std::string end_events(const std::string& reason) {
  return std::string("event: message_delta\ndata: ") +
         R"({"type":"message_delta","delta":{"stop_reason":")" + reason +
         R"(","stop_sequence":null},"usage":{"input_tokens":4,"cache_creation_input_tokens":0,)" +
         R"("cache_read_input_tokens":96,"output_tokens":9}})" + "\n\n" +
         "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
}

std::string event(const std::string& type, const std::string& members) {
  return "event: " + type + "\ndata: {\"type\":\"" + type + "\"," + members + "}\n\n";
}

// The events of a stream of these deltas; without any, of a text.
std::string streamed(const std::vector<TurnDelta>& deltas, const std::string& finish_reason,
                     const std::string& members = "") {
  std::string out;
  const auto writer = writer_of(members);
  writer->begin({.head = head(), .usage = {.prompt_tokens = 100}}, out);
  EXPECT_EQ(out, "") << "it doesn't know yet what is cached";
  for (const TurnDelta& delta : deltas) {
    writer->chunk({.turn = &delta, .cached_tokens = 96}, out);
  }
  const ResponseChoice ending{.finish_reason = finish_reason};
  const TurnDelta last;
  writer->chunk({.turn = &last, .cached_tokens = 96, .ending = &ending}, out);
  writer->end(kUsage, out);
  return out;
}

TEST(AnthropicDialect, AStreamOfText) {
  std::string out;
  const auto writer = writer_of();
  writer->begin({.head = head(), .usage = {.prompt_tokens = 100}}, out);
  writer->ping(out);
  EXPECT_EQ(out, "event: ping\ndata: {\"type\": \"ping\"}\n\n");
  out.clear();
  writer->chunk({.text = "H", .cached_tokens = 96}, out);
  const ResponseChoice ending{.finish_reason = "stop"};
  writer->chunk({.text = "i", .cached_tokens = 96, .ending = &ending}, out);
  writer->end(kUsage, out);
  EXPECT_EQ(
      out,
      start_event(4, 96) +
          event("content_block_start", R"("index":0,"content_block":{"type":"text","text":""})") +
          event("content_block_delta", R"("index":0,"delta":{"type":"text_delta","text":"H"})") +
          event("content_block_delta", R"("index":0,"delta":{"type":"text_delta","text":"i"})") +
          event("content_block_stop", R"("index":0)") + end_events("end_turn"));
}

TEST(AnthropicDialect, AStreamOfBlocks) {
  const auto block_start = [](int index, const std::string& block) {
    return event("content_block_start",
                 R"("index":)" + std::to_string(index) + R"(,"content_block":)" + block);
  };
  const auto delta = [](int index, const std::string& members) {
    return event("content_block_delta",
                 R"("index":)" + std::to_string(index) + R"(,"delta":{"type":)" + members + "}");
  };
  const auto stop = [](int index) {
    return event("content_block_stop", R"("index":)" + std::to_string(index));
  };
  const std::vector<TurnDelta> deltas = {
      {.reasoning = "h", .content = {}},
      {.reasoning = "m", .content = "I look"},
      {.call_index = 0, .begins_call = true, .call_id = "toolu_1", .call_name = "look"},
      {.call_index = 0, .arguments = R"({"a")"},
      {.call_index = 0, .arguments = ":1}"},
      {.call_index = 1, .begins_call = true, .call_id = "toolu_2", .call_name = "go"},
  };
  const std::string calls =
      block_start(1, R"({"type":"text","text":""})") + delta(1, R"("text_delta","text":"I look")") +
      stop(1) + block_start(2, R"({"type":"tool_use","id":"toolu_1","name":"look","input":{}})") +
      delta(2, R"("input_json_delta","partial_json":"{\"a\"")") +
      delta(2, R"("input_json_delta","partial_json":":1}")") + stop(2) +
      block_start(3, R"({"type":"tool_use","id":"toolu_2","name":"go","input":{}})") + stop(3) +
      end_events("tool_use");
  const std::string begin =
      start_event(4, 96) + block_start(0, R"({"type":"thinking","thinking":"","signature":""})");
  const std::string signature =
      delta(0, R"("signature_delta","signature":")" + signature_of("hm") + "\"") + stop(0);
  EXPECT_EQ(streamed(deltas, "tool_calls"), begin + delta(0, R"("thinking_delta","thinking":"h")") +
                                                delta(0, R"("thinking_delta","thinking":"m")") +
                                                signature + calls);
  EXPECT_EQ(
      streamed(deltas, "tool_calls", R"(, "thinking": {"type": "adaptive", "display": "omitted"})"),
      begin + signature + calls);
}

TEST(AnthropicDialect, AnEmptyStreamHasNoBlocks) {
  EXPECT_EQ(streamed({}, "stop"), start_event(4, 96) + end_events("end_turn"));
}

TEST(AnthropicDialect, WarningsComeWithTheMessage) {
  ResponseHead warned = head();
  warned.warnings = {"tools[0]: left out"};
  EXPECT_THAT(writer_of()->whole({.head = warned, .choices = {{.text = ""}}, .usage = {}}),
              HasSubstr(R"("warnings":["tools[0]: left out"])"));
}

TEST(AnthropicDialect, ErrorsHaveAnthropicsTypesAndStatuses) {
  using enum ErrorReason;
  const struct {
    ErrorReason reason;
    int status;
    std::string_view type;
  } kExpected[] = {
      {invalid_value, 400, "invalid_request_error"},
      {unknown_parameter, 400, "invalid_request_error"},
      {context_length_exceeded, 400, "invalid_request_error"},
      {feature_disabled, 400, "invalid_request_error"},
      {unsupported_media_type, 415, "invalid_request_error"},
      {invalid_api_key, 401, "authentication_error"},
      {host_not_allowed, 403, "permission_error"},
      {model_not_found, 404, "not_found_error"},
      {body_too_large, 413, "request_too_large"},
      {queue_full, 429, "rate_limit_error"},
      {overloaded, 529, "overloaded_error"},
      {draining, 529, "overloaded_error"},
      {request_timeout, 504, "timeout_error"},
      {internal_error, 500, "api_error"},
  };
  for (const auto& [reason, status, type] : kExpected) {
    const ErrorAnswer answer = kMessagesDialect.error({.reason = reason, .message = "no"}, "req_1");
    EXPECT_EQ(answer.status, status);
    EXPECT_EQ(answer.body, R"({"type":"error","error":{"type":")" + std::string(type) +
                               R"(","message":"no"},"request_id":"req_1"})");
  }
  std::string out;
  writer_of()->fail({.reason = overloaded, .message = "no"}, out);
  EXPECT_EQ(out, std::string("event: error\ndata: ") +
                     std::string(R"({"type":"error","error":{"type":"overloaded_error",)"
                                 R"("message":"no"}})") +
                     "\n\n");
}

TEST(AnthropicDialect, ACount) {
  static const RequestTerms limits;
  const Json body = parse_json(R"({"messages": [{"role": "user", "content": "x"}]})", "body");
  const Call call = kMessageCountDialect.parse(body, {.limits = limits});
  EXPECT_EQ(std::get<CountCall>(call).write(42), R"({"input_tokens":42})");
}

}  // namespace
}  // namespace paceline::anthropic
