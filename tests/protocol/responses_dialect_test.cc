// The answers of the Responses API, as bytes.
#include <gmock/gmock.h>

#include <regex>

#include "base/json_writer.h"
#include "protocol/dialect.h"
#include "protocol/responses_writer.h"
#include "tests/protocol/requests.h"

namespace paceline {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Asked {
  Seal seal{Seal::Key{5}};
  ResponseStore store{{}};
  RequestTerms limits;

  Call call(const std::string& members, const Dialect& dialect = kResponsesDialect) {
    return dialect.parse(parse_json(R"({"input": "x")" + members + "}", "body"),
                         {.limits = limits, .owner = "k", .seal = &seal, .store = &store});
  }
  std::unique_ptr<ChoiceWriter> writer(const std::string& members,
                                       const Dialect& dialect = kResponsesDialect) {
    Call made = call(members, dialect);
    return std::move(std::get<GenerationCall>(made).writer);
  }
};

ResponseHead response_head() { return {.id = "resp_ab", .created = 7, .model = "m"}; }

constexpr ResponseUsage kResponseUsage = {
    .prompt_tokens = 100, .completion_tokens = 9, .cached_tokens = 96, .reasoning_tokens = 3};

std::string without_time(const std::string& json) {
  return std::regex_replace(json, std::regex(R"("completed_at":\d+)"), R"("completed_at":8)");
}

std::string whole_response(Asked& asked, const ResponseChoice& choice,
                           const std::string& members = "") {
  return without_time(asked.writer(members)->whole(
      {.head = response_head(), .choices = {choice}, .usage = kResponseUsage}));
}

constexpr std::string_view kUsageJson =
    R"("usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":96,)"
    R"("cache_write_tokens":0},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":3},)"
    R"("total_tokens":109})";

constexpr std::string_view kEchoJson =
    R"("instructions":null,"max_output_tokens":null,"max_tool_calls":null,)"
    R"("parallel_tool_calls":true,"previous_response_id":null,"prompt_cache_key":null,)"
    R"("prompt_cache_retention":null,"reasoning":{"effort":null,"summary":null},)"
    R"("safety_identifier":null,"store":true,"text":{"format":{"type":"text"}},)"
    R"("tool_choice":"auto","tools":[],"top_logprobs":0,"truncation":"disabled","user":null,)"
    R"("metadata":{})";

std::string object_of(const std::string& status, const std::string& output,
                      const std::string& usage, const std::string& incomplete = "null") {
  return R"({"id":"resp_ab","object":"response","created_at":7,"status":")" + status +
         R"(","background":false,"completed_at":)" + (status == "completed" ? "8" : "null") +
         R"(,"error":null,"incomplete_details":)" + incomplete + R"(,"model":"m","output":[)" +
         output + R"(],"temperature":1,"top_p":1,"service_tier":"default",)" + usage + "," +
         std::string(kEchoJson) + "}";
}

std::string message_item(const std::string& id, const std::string& text,
                         const std::string& status = "completed") {
  return R"({"id":")" + id + R"(","type":"message","role":"assistant","content":[)" +
         R"({"type":"output_text","text":")" + text + R"(","annotations":[],"logprobs":[]}],)" +
         R"("status":")" + status + R"("})";
}

TEST(ResponsesDialect, AWholeResponse) {
  Asked asked;
  EXPECT_EQ(whole_response(asked, {.text = "Hi", .finish_reason = "stop"}),
            object_of("completed", message_item("msg_ab_0", "Hi"), std::string(kUsageJson)));
  EXPECT_EQ(whole_response(asked, {.text = "Hi", .finish_reason = "length"}, R"(, "store": false)")
                .substr(0, 120),
            object_of("incomplete", "", "").substr(0, 120));
}

TEST(ResponsesDialect, ItemsOfAWholeResponse) {
  Asked asked;
  const ResponseChoice choice{
      .turn =
          TurnParts{.reasoning = "hm",
                    .content = "I look",
                    .tool_calls = {{.id = "c1", .name = "look", .arguments = "{}"},
                                   {.id = "c2", .name = "say", .arguments = R"({"input":"ho"})"}}},
      .finish_reason = "tool_calls"};
  const std::string tools = R"(, "tools": [{"type": "function", "name": "look", "parameters": {}},
      {"type": "custom", "name": "say"}])";
  EXPECT_THAT(whole_response(asked, choice, tools),
              HasSubstr(R"("output":[{"id":"rs_ab_0","type":"reasoning","summary":[],"content":[)"
                        R"({"type":"reasoning_text","text":"hm"}],"status":"completed"},)" +
                        message_item("msg_ab_1", "I look") +
                        R"(,{"id":"fc_ab_2","type":"function_call","call_id":"c1","name":"look",)"
                        R"("arguments":"{}","status":"completed"},)"
                        R"({"id":"ctc_ab_3","type":"custom_tool_call","call_id":"c2","name":"say",)"
                        R"("input":"ho","status":"completed"}])"));
  asked.store.erase("k", "resp_ab");
  const std::string sealed = asked.seal.close("hm", {.purpose = "reasoning", .owner = "k"});
  EXPECT_THAT(
      whole_response(asked, choice, tools + R"(, "reasoning": {"summary": "auto"}, "store": false,
                                 "include": ["reasoning.encrypted_content"])"),
      HasSubstr(R"("type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],)"
                R"("encrypted_content":")" +
                sealed + R"(","status":"completed"})"));
}

TEST(ResponsesDialect, AnAnswerIsStoredForItsKey) {
  Asked asked;
  const std::string json = whole_response(asked, {.text = "Hi", .finish_reason = "stop"});
  const auto stored = asked.store.find("k", "resp_ab");
  ASSERT_NE(stored, nullptr);
  EXPECT_EQ(without_time(*stored->json), json);
  EXPECT_EQ(*stored->input,
            R"([{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}],)"
            R"("id":"msg_ab_i0"}])");
  const auto next = asked.call(R"(, "previous_response_id": "resp_ab")");
  const auto& chat = std::get<ChatRequest>(std::get<GenerationCall>(next).request);
  ASSERT_EQ(chat.input.messages.size(), 3);
  EXPECT_EQ(chat.input.messages[1].content, "Hi");
  whole_response(asked, {.text = "Hi", .finish_reason = "stop"}, R"(, "store": false)");
  EXPECT_EQ(asked.store.num_responses(), 1);
}

TEST(ResponsesDialect, BackgroundResponsesAreQueuedThenReplaced) {
  Asked asked;
  const auto writer = asked.writer(R"(, "background": true)");
  EXPECT_THAT(writer->accepted(response_head()),
              HasSubstr(R"("status":"queued","background":true)"));
  EXPECT_THAT(*asked.store.find("k", "resp_ab")->json, HasSubstr(R"("status":"queued")"));
  const ResponseChoice choice{.text = "Hi", .finish_reason = "stop"};
  writer->whole({.head = response_head(), .choices = {choice}, .usage = kResponseUsage});
  EXPECT_THAT(*asked.store.find("k", "resp_ab")->json, HasSubstr(R"("status":"completed")"));
  responses::store_failure(asked.store, "k", "resp_ab",
                           error_json({.reason = ErrorReason::queue_full, .message = "full"}));
  EXPECT_THAT(*asked.store.find("k", "resp_ab")->json, HasSubstr(R"("status":"failed")"));
}

// An event's type and members; the sequence numbers follow by themselves.
struct Event {
  std::string type;
  std::string members;
};

std::string events(const std::vector<Event>& all) {
  std::string out;
  for (size_t i = 0; i < all.size(); ++i) {
    out += "event: response." + all[i].type + "\ndata: {\"type\":\"response." + all[i].type +
           "\",\"sequence_number\":" + std::to_string(i) + "," + all[i].members + "}\n\n";
  }
  return out;
}

std::string streamed_response(Asked& asked, const std::vector<TurnDelta>& deltas,
                              const std::string& finish_reason, const std::string& members = "") {
  std::string out;
  const auto writer = asked.writer(R"(, "stream": true)" + members);
  writer->begin({.head = response_head(), .usage = {.prompt_tokens = 100}}, out);
  for (const TurnDelta& delta : deltas) writer->chunk({.turn = &delta}, out);
  const ResponseChoice ending{.finish_reason = finish_reason};
  const TurnDelta last;
  writer->chunk({.turn = &last, .ending = &ending}, out);
  writer->end(kResponseUsage, out);
  return without_time(out);
}

const std::string kCreated = R"("response":)" + object_of("in_progress", "", R"("usage":null)");

TEST(ResponsesDialect, AStreamOfText) {
  Asked asked;
  const std::string item = R"("output_index":0,"item_id":"msg_ab_0","content_index":0,)";
  EXPECT_EQ(
      streamed_response(asked, {{.content = "H"}, {.content = "i"}}, "stop"),
      events(
          {{"created", kCreated},
           {"in_progress", kCreated},
           {"output_item.added",
            R"("output_index":0,"item":{"id":"msg_ab_0","type":"message","role":"assistant",)"
            R"("content":[],"status":"in_progress"})"},
           {"content_part.added",
            item + R"("part":{"type":"output_text","text":"","annotations":[],"logprobs":[]})"},
           {"output_text.delta", item + R"("delta":"H","logprobs":[])"},
           {"output_text.delta", item + R"("delta":"i","logprobs":[])"},
           {"output_text.done", item + R"("text":"Hi","logprobs":[])"},
           {"content_part.done",
            item + R"("part":{"type":"output_text","text":"Hi","annotations":[],"logprobs":[]})"},
           {"output_item.done", R"("output_index":0,"item":)" + message_item("msg_ab_0", "Hi")},
           {"completed", R"("response":)" + object_of("completed", message_item("msg_ab_0", "Hi"),
                                                      std::string(kUsageJson))}}));
}

TEST(ResponsesDialect, AStreamOfReasoningAndCalls) {
  Asked asked;
  const std::string out = streamed_response(
      asked,
      {{.reasoning = "hm"},
       {.call_index = 0, .begins_call = true, .call_id = "c1", .call_name = "look"},
       {.call_index = 0, .arguments = "{}"},
       {.call_index = 1, .begins_call = true, .call_id = "c2", .call_name = "say"},
       {.call_index = 1, .arguments = R"({"input":)"},
       {.call_index = 1, .arguments = R"("ho"})"}},
      "tool_calls",
      R"(, "tools": [{"type": "function", "name": "look", "parameters": {}},
          {"type": "custom", "name": "say"}], "reasoning": {"summary": "auto"})");
  std::vector<std::string> types;
  const std::regex type("event: response\\.([a-z_.]+)");
  for (auto at = std::sregex_iterator(out.begin(), out.end(), type); at != std::sregex_iterator();
       ++at) {
    types.push_back((*at)[1]);
  }
  EXPECT_THAT(types,
              testing::ElementsAre(
                  "created", "in_progress", "output_item.added", "reasoning_summary_part.added",
                  "reasoning_summary_text.delta", "reasoning_summary_text.done",
                  "reasoning_summary_part.done", "output_item.done", "output_item.added",
                  "function_call_arguments.delta", "function_call_arguments.done",
                  "output_item.done", "output_item.added", "custom_tool_call_input.delta",
                  "custom_tool_call_input.done", "output_item.done", "completed"));
  EXPECT_THAT(out, HasSubstr(R"("output_index":1,"item_id":"fc_ab_1","arguments":"{}"})"));
  EXPECT_THAT(out, HasSubstr(R"("output_index":2,"item_id":"ctc_ab_2","delta":"ho"})"));
}

TEST(ResponsesDialect, AStreamThatEndsEarly) {
  Asked asked;
  EXPECT_THAT(streamed_response(asked, {{.content = "H"}}, "length"),
              HasSubstr(R"("incomplete_details":{"reason":"max_output_tokens"})"));
  asked.store.erase("k", "resp_ab");
  std::string out;
  const auto writer = asked.writer("");
  writer->begin({.head = response_head()}, out);
  out.clear();
  writer->fail({.reason = ErrorReason::request_timeout, .message = "too long"}, out);
  EXPECT_THAT(out, StartsWith("event: response.failed\n"));
  EXPECT_THAT(out, HasSubstr(R"("error":{"code":"server_error","message":"too long"})"));
}

TEST(ResponsesDialect, Compaction) {
  Asked asked;
  const auto writer = asked.writer("", kCompactionDialect);
  const ResponseChoice choice{.text = "Sum", .finish_reason = "stop"};
  const std::string sealed = asked.seal.close("Sum", {.purpose = "compaction", .owner = "k"});
  EXPECT_EQ(writer->whole({.head = response_head(), .choices = {choice}, .usage = kResponseUsage}),
            R"({"id":"resp_ab","object":"response.compaction","created_at":7,"output":[)"
            R"({"id":"cmp_ab_0","type":"compaction","encrypted_content":")" +
                sealed + R"("}],)" + std::string(kUsageJson) + "}");
  EXPECT_EQ(asked.store.num_responses(), 0);
}

TEST(ResponsesDialect, InputTokens) {
  Asked asked;
  EXPECT_EQ(std::get<CountCall>(asked.call("", kInputTokensDialect)).write(12),
            R"({"object":"response.input_tokens","input_tokens":12})");
}

}  // namespace
}  // namespace paceline
