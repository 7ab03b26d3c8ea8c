// The bodies of /v1/decisions and /v1/systemone, and their answers.
#include "protocol/decision_request.h"

#include <gtest/gtest.h>

#include "tests/protocol/requests.h"

namespace paceline {
namespace {

DecisionRequest decision(const std::string& body) {
  return parse_decision_request(parse_json(body, "body"));
}
DecisionRequest system_one(const std::string& body) {
  return parse_system_one_request(parse_json(body, "body"));
}

const std::string kPredicate = R"({"type": "predicate", "instructions": "Is it?"})";

std::string body_with(const std::string& input, const std::string& question = kPredicate) {
  return R"({"input": )" + input + R"(, "questions": [)" + question + "]}";
}

std::string state_with(const std::string& question) {
  return R"({"state": "x", "questions": {"q": )" + question + "}}";
}

std::string message_of(const std::string& body) { return refusal(decision, body).message; }
std::string system_one_message(const std::string& body) {
  return refusal(system_one, body).message;
}

TEST(DecisionRequest, ReadsEveryKindOfQuestion) {
  const DecisionRequest request = decision(R"({
    "model": "m", "input": "text", "prompt_cache_key": "k", "safety_identifier": "s",
    "prompt_cache_options": {"mode": "implicit", "ttl": "30m"}, "temperature": 2,
    "content_free_input": "N/A",
    "questions": [
      {"type": "predicate", "instructions": "Is it?", "name": "first"},
      {"type": "choice", "instructions": [{"type": "input_text", "text": "Which"},
                                          {"type": "input_json", "data": {"a": [1]}}],
       "choices": [{"value": "true", "description": "d"}, {"value": true}]},
      {"type": "score", "instructions": "How?", "levels": [{"label": "low"},
                                                          {"label": "high", "description": "h"}]}]})");
  EXPECT_EQ(request.input, "text");
  EXPECT_EQ(request.temperature, 2);
  EXPECT_EQ(request.content_free_input, "N/A");
  ASSERT_EQ(request.questions.size(), 3u);
  EXPECT_EQ(request.questions[0].kind, QuestionKind::predicate);
  EXPECT_EQ(request.names[0], "first");
  EXPECT_EQ(request.names[1], std::nullopt);
  EXPECT_EQ(request.questions[1].instructions, "Which\n{\"a\":[1]}");
  EXPECT_EQ(request.questions[1].options[0].value, ChoiceValue("true"));
  EXPECT_EQ(request.questions[1].options[0].description, "d");
  EXPECT_EQ(request.questions[1].options[1].value, ChoiceValue(true));
  EXPECT_EQ(request.questions[2].options[1].value, ChoiceValue("high"));
  EXPECT_EQ(request.questions[2].options[1].description, "h");
}

TEST(DecisionRequest, MessagesAndCallsAreOneText) {
  EXPECT_EQ(decision(body_with(R"([{"role": "user", "content": "one"}])")).input, "one");
  EXPECT_EQ(decision(body_with(R"([
    {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "Rules."}]},
    {"role": "user", "content": [{"type": "input_text", "text": "a"},
                                 {"type": "input_json", "data": [{"b": null}]}]},
    {"type": "message", "role": "assistant", "phase": "commentary",
     "content": [{"type": "output_text", "text": "c"}, {"type": "refusal", "refusal": "d"}]},
    {"type": "function_call", "name": "find", "call_id": "1", "arguments": "{}", "id": "i",
     "status": "completed", "namespace": null},
    {"type": "function_call_output", "call_id": "1", "output": "found"},
    {"type": "custom_tool_call", "name": "run", "call_id": "2", "input": "ls"},
    {"type": "custom_tool_call_output", "call_id": "2",
     "output": [{"type": "input_text", "text": "files",
                 "prompt_cache_breakpoint": {"mode": "explicit"}}]}])"))
                .input,
            "system:\nRules.\n\nuser:\na\n[{\"b\":null}]\n\nassistant:\nc\nd\n\n"
            "assistant calls find:\n{}\n\nfind answers:\nfound\n\nassistant calls run:\nls\n\n"
            "run answers:\nfiles");
}

TEST(DecisionRequest, WrongInputsNameTheField) {
  EXPECT_EQ(message_of(R"({"questions": [)" + kPredicate + "]}"), "input: missing");
  EXPECT_EQ(message_of(body_with("[]")), "input: an empty array, expected at least one item");
  EXPECT_EQ(message_of(body_with("3")), "input: found 3, expected a string or an array of items");
  EXPECT_EQ(message_of(body_with(R"([{"role": "user"}])")), "input[0].content: missing");
  EXPECT_EQ(message_of(body_with(R"([{"type": "function_call", "name": "f", "call_id": "1"}])")),
            "input[0].arguments: missing");
  EXPECT_EQ(
      message_of(body_with(R"([{"type": "function_call_output", "call_id": "1", "output": "x"}])")),
      "input[0].call_id: found \"1\", expected the call_id of an earlier call");
  const ApiError image =
      refusal(decision, body_with(R"([{"role": "user", "content": [{"type": "input_image",
                               "image_url": "data:x"}]}])"));
  EXPECT_EQ(image.field, "input[0].content[0].type");
  EXPECT_EQ(code_of(image), "unsupported_parameter");
  EXPECT_EQ(message_of(body_with(R"([{"role": "user", "content": [{"type": "input_json"}]}])")),
            "input[0].content[0].data: missing");
}

TEST(DecisionRequest, WrongQuestionsNameTheField) {
  const auto wrong = [](const std::string& question) {
    return message_of(body_with(R"("x")", question));
  };
  EXPECT_EQ(message_of(R"({"input": "x", "questions": []})"),
            "questions: an empty array, expected at least one item");
  EXPECT_EQ(wrong("{}"), "questions[0].type: missing");
  EXPECT_EQ(
      wrong(R"({"type": "noul", "instructions": "x"})"),
      "questions[0].type: found \"noul\", expected one of \"predicate\", \"choice\", \"score\"");
  EXPECT_EQ(wrong(R"({"type": "predicate"})"), "questions[0].instructions: missing");
  EXPECT_EQ(wrong(R"({"type": "choice", "instructions": "x"})"), "questions[0].choices: missing");
  EXPECT_EQ(wrong(R"({"type": "score", "instructions": "x", "choices": [{"value": "a"},
                      {"value": "b"}]})"),
            "questions[0].choices: only allowed with type choice");
  EXPECT_EQ(wrong(R"({"type": "choice", "instructions": "x", "choices": [{"value": "a"}]})"),
            "questions[0].choices: 1 items, expected 2");
  EXPECT_EQ(
      wrong(
          R"({"type": "choice", "instructions": "x", "choices": [{"value": 1}, {"value": "a"}]})"),
      "questions[0].choices[0].value: found 1, expected a string or a boolean");
  EXPECT_EQ(wrong(R"({"type": "score", "instructions": "x", "levels": [{"label": "a", "value": 1},
                      {"label": "b"}]})"),
            "unknown field questions[0].levels[0].value");
  EXPECT_EQ(message_of(R"({"input": "x", "temperature": 0, "questions": [)" + kPredicate + "]}"),
            "temperature: found 0, expected a number from 0.01 to 100");
}

TEST(SystemOneRequest, ReadsEveryKindOfQuestion) {
  const DecisionRequest request = system_one(R"({
    "model": "m", "state": {"a": 1}, "questions": {
      "n": {"type": "noul", "instructions": "Is it?"},
      "o": {"type": "noul", "criteria": {"true": "t", "false": null}},
      "c": {"type": "choice", "instructions": {"ask": "?"}, "criteria": {"x": null, "y": "why"}},
      "s": {"type": "score", "instructions": "How?", "criteria": ["low", {"high": 1}]}}})");
  EXPECT_EQ(request.input, "{\"a\":1}");
  ASSERT_EQ(request.questions.size(), 4u);
  EXPECT_EQ(request.names[2], "c");
  EXPECT_TRUE(request.questions[0].options.empty());
  EXPECT_EQ(request.questions[1].options[0].description, "t");
  EXPECT_EQ(request.questions[1].options[1].description, "");
  EXPECT_EQ(request.questions[2].instructions, "{\"ask\":\"?\"}");
  EXPECT_EQ(request.questions[2].options[1].value, ChoiceValue("y"));
  EXPECT_EQ(request.questions[2].options[1].description, "why");
  EXPECT_EQ(request.questions[3].options[1].value, ChoiceValue("{\"high\":1}"));
}

TEST(SystemOneRequest, WrongQuestionsNameTheField) {
  const auto wrong = [](const std::string& question) {
    return system_one_message(state_with(question));
  };
  EXPECT_EQ(wrong(R"({"type": "noul"})"),
            "questions.q.instructions: missing, and criteria describes neither outcome");
  EXPECT_EQ(wrong(R"({"type": "noul", "criteria": {"yes": "x"}})"),
            "questions.q.criteria: expected an object with true and false");
  EXPECT_EQ(wrong(R"({"type": "choice", "instructions": "x"})"), "questions.q.criteria: missing");
  EXPECT_EQ(wrong(R"({"type": "choice", "criteria": {"only": null}})"),
            "questions.q.criteria: expected an object of 2 to 255 names and descriptions");
  EXPECT_EQ(wrong(R"({"type": "score", "criteria": ["a"]})"),
            "questions.q.criteria: expected an array of 2 to 10 levels");
  EXPECT_EQ(code_of(refusal(system_one, state_with(R"({"type": "box"})"))),
            "unsupported_parameter");
  EXPECT_EQ(system_one_message(R"({"questions": {"q": {"type": "noul", "instructions": "x"}}})"),
            "state: missing");
  EXPECT_EQ(refusal(system_one, R"({"state": "x", "questions": {}})").field, "questions");
  EXPECT_EQ(refusal(system_one, R"({"state": "x", "questions": {"q": 3}})").field, "questions.q");
  EXPECT_EQ(refusal(system_one, R"({"state": "x", "assets": {"a": 1}, "questions": {
                                      "q": {"type": "noul", "instructions": "x"}}})")
                .field,
            "assets");
}

Decisions some_decisions() {
  return {
      .answers = {{.probabilities = {0.75f, 0.25f},
                   .confidence = 0.5f,
                   .label_mass = 0.5f,
                   .argmax_is_label = true},
                  {.probabilities = {0.25f, 0.75f}, .best = 1, .confidence = 0.5f, .label_mass = 1},
                  {.probabilities = {0.5f, 0.5f}, .score = 0.5f, .label_mass = 0.25f}},
      .usage = {.prompt_tokens = 50, .cached_tokens = 32}};
}

TEST(DecisionRequest, AnswersAreOpenAIs) {
  const DecisionRequest request = decision(R"({"input": "x", "questions": [
    {"type": "predicate", "instructions": "Is it?", "name": "first"},
    {"type": "choice", "instructions": "Which?", "choices": [{"value": "true"}, {"value": true}]},
    {"type": "score", "instructions": "How?", "levels": [{"label": "low"}, {"label": "high"}]}]})");
  EXPECT_EQ(
      decision_response_json(request, {.head = {.model = "m"}, .decisions = some_decisions()}),
      R"({"answers":[{"type":"predicate","name":"first","probability":0.75,"label_mass":0.5,)"
      R"("argmax_is_label":true},{"type":"choice","name":null,"choice":true,)"
      R"("confidence":0.5,"probabilities":[{"value":"true","probability":0.25},)"
      R"({"value":true,"probability":0.75}],"label_mass":1,"argmax_is_label":false},)"
      R"({"type":"score","name":null,"score":0.5,"confidence":0,"probabilities":[)"
      R"({"label":"low","value":0,"probability":0.5},)"
      R"({"label":"high","value":1,"probability":0.5}],"label_mass":0.25,)"
      R"("argmax_is_label":false}],"model":"m","usage":{"input_tokens":50,)"
      R"("input_tokens_details":{"cached_tokens":32,"cache_write_tokens":18},)"
      R"("output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},)"
      R"("total_tokens":50}})");
}

TEST(SystemOneRequest, AnswersAreTypeSafes) {
  const DecisionRequest request = system_one(R"({"state": "x", "questions": {
    "n": {"type": "noul", "instructions": "Is it?"},
    "c": {"type": "choice", "criteria": {"a": null, "b": null}},
    "s": {"type": "score", "criteria": ["low", "high"]}}})");
  EXPECT_EQ(
      system_one_response_json(request, {.head = {.model = "m"}, .decisions = some_decisions()}),
      R"({"model":"m","answers":{"n":{"type":"noul","noul":0.75,"label_mass":0.5,)"
      R"("argmax_is_label":true},"c":{"type":"choice","choice":"b","confidence":0.5,)"
      R"("probabilities":{"a":0.25,"b":0.75},"label_mass":1,"argmax_is_label":false},)"
      R"("s":{"type":"score","score":0.5,"legend":{"0":"low","1":"high"},"confidence":0,)"
      R"("probabilities":{"0":0.5,"1":0.5},"label_mass":0.25,"argmax_is_label":false}},)"
      R"("usage":{"input_tokens":50,"output_tokens":0}})");
}

TEST(DecisionRequest, DataOfAnotherTypeIsRefused) {
  const std::string parts = R"([{"role": "user", "content": [{"type": "input_json", "data": 7}]}])";
  EXPECT_EQ(message_of(body_with(parts)),
            "input[0].content[0].data: found 7, expected an object or an array of objects");
}

}  // namespace
}  // namespace paceline
