#include "protocol/responses_request.h"

#include <gmock/gmock.h>

#include "tests/protocol/requests.h"

namespace paceline {
namespace {

using responses::parse_request;
using responses::Request;
using testing::ElementsAre;
using testing::HasSubstr;

const Seal& seal() {
  static const Seal one(Seal::Key{5});
  return one;
}

Request responses_request(const std::string& body, ResponseStore* store = nullptr,
                          const std::string& owner = "k") {
  static const RequestTerms limits;
  return parse_request(parse_json(body, "body"),
                       {.limits = limits, .owner = owner, .seal = &seal(), .store = store});
}

std::string with_input(const std::string& items, const std::string& members = "") {
  return R"({"input": [)" + items + "]" + members + "}";
}

// The messages as templates see them, one a line.
std::string messages_of(const Request& request) {
  std::string all;
  for (const ChatMessage& message : request.chat.input.messages) {
    if (!all.empty()) all += '\n';
    all += message.json.empty() ? message.role + ": " + message.content : message.json;
  }
  return all;
}
std::string messages_of_items(const std::string& items, const std::string& members = "") {
  return messages_of(responses_request(with_input(items, members)));
}

ApiError refused(const std::string& body) {
  return refusal([](const std::string& text) { responses_request(text); }, body);
}

TEST(ResponsesRequest, TextAndInstructionsAreAChat) {
  EXPECT_EQ(messages_of(responses_request(R"({"input": "Hi", "instructions": "Be brief"})")),
            "system: Be brief\nuser: Hi");
  EXPECT_EQ(messages_of(responses_request(R"({"input": "", "max_output_tokens": 1})")), "user: ");
  EXPECT_EQ(messages_of(responses_request(R"({"input": []})")), "user: ");
}

TEST(ResponsesRequest, LeadingInstructionsAreOneMessage) {
  EXPECT_EQ(messages_of_items(R"({"type": "message", "role": "developer", "content": [
              {"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
              {"role": "user", "content": "x"}, {"role": "system", "content": "late"})",
                              R"(, "instructions": "Be brief")"),
            "system: Be brief\n\na\nb\nuser: x\nsystem: late");
}

TEST(ResponsesRequest, ATurnOfItemsIsOneMessage) {
  EXPECT_EQ(
      messages_of_items(R"(
      {"role": "user", "content": "go"},
      {"type": "reasoning", "id": "rs_1", "summary": [],
       "content": [{"type": "reasoning_text", "text": "hm"}]},
      {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "content": [
        {"type": "output_text", "text": "I look", "annotations": [], "logprobs": []}]},
      {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look",
       "arguments": "{\"at\": 2}", "status": "completed"},
      {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "*** Begin"},
      {"type": "function_call_output", "call_id": "c1", "output": "5"},
      {"type": "custom_tool_call_output", "call_id": "c2", "output": [
        {"type": "input_text", "text": "ok"}, {"type": "input_image", "image_url": "data:"}]},
      {"type": "message", "role": "assistant", "content": "Done"})"),
      "user: go\n"
      R"({"role":"assistant","content":"I look","reasoning_content":"hm","tool_calls":[)"
      R"({"id":"c1","type":"function","function":{"name":"look","arguments":{"at":2}}},)"
      R"({"id":"c2","type":"function","function":{"name":"patch","arguments":{"input":"*** Begin"}}}]})"
      "\n"
      R"({"role":"tool","content":"5","tool_call_id":"c1"})"
      "\n"
      R"({"role":"tool","content":"ok\n[input_image omitted: the model reads text only]","tool_call_id":"c2"})"
      "\nassistant: Done");
}

TEST(ResponsesRequest, SealedReasoningOpensForItsKeyOnly) {
  const std::string sealed =
      seal().close("secret", {.purpose = responses::kReasoningPurpose, .owner = "k"});
  const auto body = [](const std::string& value) {
    return with_input(
        R"({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": ")" + value +
        R"("}, {"role": "assistant", "content": "x"})");
  };
  EXPECT_EQ(messages_of(responses_request(body(sealed))),
            R"({"role":"assistant","content":"x","reasoning_content":"secret"})");
  for (const std::string& foreign :
       {sealed + "A", std::string("gAAAAABo"), seal().close("secret", {.purpose = "reasoning"})}) {
    const ApiError error = refused(body(foreign));
    EXPECT_EQ(openai_kind(error.reason).status, 400);
    EXPECT_EQ(error.field, "input[0].encrypted_content");
  }
}

TEST(ResponsesRequest, ACompactedConversationBeginsTheNextMessage) {
  const std::string sealed =
      seal().close("We did a", {.purpose = responses::kCompactionPurpose, .owner = "k"});
  const std::string item = R"({"type": "compaction", "encrypted_content": ")" + sealed + R"("})";
  EXPECT_EQ(messages_of_items(item + R"(, {"role": "user", "content": "go on"})"),
            "user: We did a\n\ngo on");
  EXPECT_EQ(messages_of_items(item), "user: We did a");
}

TEST(ResponsesRequest, AnItemAsksForCompaction) {
  const Request request = responses_request(with_input(
      R"({"role": "user", "content": "x"}, {"role": "assistant", "content": "y"},
         {"type": "compaction_trigger"})",
      R"(, "tools": [{"type": "function", "name": "f", "parameters": {}}])"));
  EXPECT_TRUE(request.conversation.asks_for_compaction);
  EXPECT_EQ(request.chat.input.messages.back().content, responses::kCompactionPrompt);
  EXPECT_EQ(request.chat.input.tools_json, "");
  EXPECT_EQ(request.chat.options.max_tokens, 4096);
  EXPECT_EQ(responses_request(
                with_input(R"({"type": "compaction_trigger"})", R"(, "max_output_tokens": 9)"))
                .chat.options.max_tokens,
            9);
  EXPECT_EQ(
      refused(with_input(R"({"type": "compaction_trigger"}, {"role": "user", "content": "x"})"))
          .field,
      "input[1]");
}

TEST(ResponsesRequest, ToolsAreTheTemplates) {
  const Request request = responses_request(R"({"input": "x", "tools": [
      {"type": "web_search"},
      {"type": "function", "name": "look", "description": "Looks.", "strict": false,
       "parameters": {"type": "object", "properties": {"at": {"type": "integer"}}}},
      {"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "regex",
       "definition": "[a-z]+"}},
      {"type": "namespace", "name": "n", "description": "d", "tools": []}]})");
  EXPECT_EQ(request.chat.input.tools_json,
            R"([{"type":"function","function":{"name":"look","description":"Looks.",)"
            R"("parameters":{"type":"object","properties":{"at":{"type":"integer"}}}}},)"
            R"({"type":"function","function":{"name":"patch","parameters":{"type":"object",)"
            R"("properties":{"input":{"type":"string","pattern":"^(?:[a-z]+)$"}},)"
            R"("required":["input"],"additionalProperties":false}}}])");
  EXPECT_THAT(request.tools.custom, ElementsAre("patch"));
  EXPECT_THAT(request.tools.hosted, ElementsAre("web_search", "namespace"));
  EXPECT_THAT(request.chat.warnings,
              ElementsAre("tools[0]: web_search left out, this server runs no tools itself",
                          "tools[3]: namespace left out, this server runs no tools itself"));
}

TEST(ResponsesRequest, AGrammarOfLarkIsShownAndEnforced) {
  const Request request = responses_request(R"({"input": "x", "tools": [{"type": "custom",
      "name": "patch", "format": {"type": "grammar", "syntax": "lark", "definition": "start: \"a\""}}]})");
  EXPECT_EQ(request.chat.turn.tools[0].input_grammar, "start: \"a\"");
  EXPECT_THAT(request.chat.input.tools_json, HasSubstr("Lark's notation:\\nstart: "));
}

TEST(ResponsesRequest, ToolChoice) {
  const auto asked = [](const std::string& choice) {
    return R"({"input": "x", "tools": [{"type": "function", "name": "a", "parameters": {}},
        {"type": "custom", "name": "b"}, {"type": "mcp", "server_label": "m"}], "tool_choice": )" +
           choice + "}";
  };
  const auto turn = [&](const std::string& choice) {
    return responses_request(asked(choice)).chat.turn;
  };
  EXPECT_EQ(turn(R"("required")").tool_choice, ToolChoice::required);
  EXPECT_EQ(turn(R"({"type": "custom", "name": "b"})").tool_name, "b");
  const TurnRequest allowed = turn(R"({"type": "allowed_tools", "mode": "required", "tools": [
      {"type": "function", "name": "a"}, {"type": "mcp", "server_label": "m"}]})");
  ASSERT_EQ(allowed.tools.size(), 1);
  EXPECT_EQ(allowed.tools[0].name, "a");
  EXPECT_EQ(allowed.tool_choice, ToolChoice::required);
  EXPECT_EQ(refused(asked(R"({"type": "mcp", "server_label": "m"})")).reason,
            ErrorReason::unsupported_parameter);
  EXPECT_EQ(refused(asked(R"({"type": "function", "name": "c"})")).field, "tool_choice");
  EXPECT_EQ(
      refused(asked(R"({"type": "allowed_tools", "tools": [{"type": "function", "name": "c"}]})"))
          .field,
      "tool_choice.tools[0].name");
  EXPECT_THAT(
      refused(R"({"input": "x", "tools": [{"type": "web_search"}], "tool_choice": "required"})")
          .message,
      HasSubstr("only web_search are there"));
}

TEST(ResponsesRequest, FormatsConstrainTheText) {
  const auto spec = [](const std::string& format) {
    return responses_request(R"({"input": "x", "text": {"format": )" + format + "}}")
        .chat.options.constraint;
  };
  EXPECT_FALSE(spec(R"({"type": "text"})"));
  EXPECT_EQ(spec(R"({"type": "json_object"})")->kind, ConstraintSpec::Kind::json_object);
  const auto schema =
      spec(R"({"type": "json_schema", "name": "n", "strict": true, "schema": {"type": "null"}})");
  EXPECT_EQ(schema->text, R"({"type":"null"})");
  EXPECT_TRUE(schema->strict);
  EXPECT_EQ(refused(R"({"input": "x", "text": {"format": {"type": "json_schema"}}})").field,
            "text.format.schema");
}

TEST(ResponsesRequest, GoesOnFromAStoredResponseOfItsKey) {
  ResponseStore store({});
  const StoredText input =
      store.keep(R"([{"type":"message","role":"user","content":"1","id":"msg_ab_i0"}])");
  const StoredText output = store.keep(
      R"([{"id":"msg_ab_0","type":"message","role":"assistant","content":[{"type":"output_text","text":"2"}]}])");
  store.add("k", "resp_ab", {.json = store.keep("{}"), .input = input, .context = {input, output}});
  const std::string body =
      R"({"input": "3", "instructions": "i", "previous_response_id": "resp_ab"})";
  const Request request = responses_request(body, &store);
  EXPECT_EQ(messages_of(request), "system: i\nuser: 1\nassistant: 2\nuser: 3");
  EXPECT_EQ(request.conversation.items.size(), 1);
  EXPECT_EQ(request.conversation.earlier.size(), 2);
  const auto as_other = [&](const std::string& text) { responses_request(text, &store, "other"); };
  const ApiError error = refusal(as_other, body);
  EXPECT_EQ(openai_kind(error.reason).status, 404);
  EXPECT_EQ(error.field, "previous_response_id");
  const std::string reference = with_input(R"({"type": "item_reference", "id": "msg_ab_0"})");
  EXPECT_EQ(messages_of(responses_request(reference, &store)), "assistant: 2");
  EXPECT_EQ(refusal(as_other, reference).field, "input[0].id");
}

// The fields of Codex CLI.
TEST(ResponsesRequest, CodexIsUnderstood) {
  const Request request = responses_request(R"({"model": "m", "instructions": "You are Codex",
      "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}],
      "tools": [{"type": "function", "name": "shell", "description": "d", "strict": false,
        "parameters": {"type": "object", "properties": {"command": {"type": "array",
        "items": {"type": "string"}}}, "required": ["command"], "additionalProperties": false}},
        {"type": "web_search", "external_web_access": false}, {"type": "local_shell"}],
      "tool_choice": "auto", "parallel_tool_calls": false,
      "reasoning": {"effort": "medium", "summary": "auto"}, "store": false, "stream": true,
      "include": ["reasoning.encrypted_content"], "prompt_cache_key": "0199",
      "client_metadata": {"x-codex-installation-id": "i"}})");
  EXPECT_TRUE(request.chat.generation.streaming.stream);
  EXPECT_TRUE(request.seals_reasoning);
  EXPECT_TRUE(request.summarises_reasoning);
  EXPECT_FALSE(request.is_stored);
  EXPECT_FALSE(request.chat.turn.parallel_tool_calls);
  EXPECT_EQ(request.chat.turn.reasoning_effort, "medium");
}

TEST(ResponsesRequest, WhatIsNotHereIsRefusedByName) {
  for (const auto& [members, field] : std::initializer_list<std::pair<std::string, std::string>>{
           {R"("conversation": "conv_1")", "conversation"},
           {R"("prompt": {"id": "p"})", "prompt"},
           {R"("moderation": {"model": "x"})", "moderation"},
           {R"("background": true, "store": false)", "background"},
           {R"("top_logprobs": 2)", "top_logprobs"},
           {R"("include": ["everything"])", "include[0]"},
           {R"("generate": false)", "generate"},
           {R"("metadata": {"a": 1})", "metadata.a"}}) {
    EXPECT_EQ(refused(R"({"input": "x", )" + members + "}").field, field);
  }
  EXPECT_EQ(refused(with_input(R"({"type": "message", "role": "user", "content": [
                {"type": "input_image", "image_url": "x"}]})"))
                .field,
            "input[0].content[0].type");
  EXPECT_EQ(refused(with_input(R"({"type": "thing"})")).field, "input[0].type");
  EXPECT_EQ(refused(with_input(R"({"type": "function_call", "call_id": "c", "name": "n"})")).field,
            "input[0].arguments");
}

}  // namespace
}  // namespace paceline
