// JSON Lines files as a whole: encodings, faults, limits, what is cut; and where files are found.
#include "dataset/dataset.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "base/line_reader.h"
#include "dataset/dataset_files.h"
#include "dataset/json_array.h"
#include "tests/dataset/training_files.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kChat =
    R"({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]})";

std::vector<std::vector<int32_t>> tokens_of(const std::vector<Example>& examples) {
  std::vector<std::vector<int32_t>> tokens;
  for (const Example& example : examples) tokens.push_back(example.tokens);
  return tokens;
}

TEST_F(DatasetTest, ReadsTheSameWithAMarkCarriageReturnsAndBlankLines) {
  const auto plain = tokens_of(read_lines("{\"text\": \"a b\"}\n{\"text\": \"c\"}\n"));
  ASSERT_EQ(plain.size(), 2u);
  EXPECT_EQ(tokens_of(read_lines("{\"text\": \"a b\"}\n{\"text\": \"c\"}")), plain);
  EXPECT_EQ(tokens_of(read_lines("\xEF\xBB\xBF{\"text\": \"a b\"}\n{\"text\": \"c\"}\n")), plain);
  EXPECT_EQ(tokens_of(read_lines("{\"text\": \"a b\"}\r\n{\"text\": \"c\"}\r\n")), plain);
  EXPECT_EQ(tokens_of(read_lines("\n  \n{\"text\": \"a b\"}\n\r\n{\"text\": \"c\"}\n\n")), plain);
  EXPECT_EQ(tokens_of(read("x.json", "{\"text\": \"a b\"}\n{\"text\": \"c\"}\n").examples), plain);
}

TEST_F(DatasetTest, RefusesAFileWithoutExamples) {
  for (const std::string_view empty : {"", "\n \n\r\n", "\xEF\xBB\xBF", "\xEF\xBB\xBF\n"}) {
    expect_error(ErrorCode::invalid, {"train.jsonl: found no example, expected at least one line"},
                 [&] { read_lines(empty); });
  }
  expect_error(ErrorCode::not_found, {"no.jsonl"},
               [&] { read_dataset(files_.directory() / "no.jsonl", model(), {}); });
}

TEST_F(DatasetTest, ReadsAnArrayOfExamples) {
  const auto lines = tokens_of(read_lines("{\"text\": \"a]\\\" [\"}\n{\"text\": \"b\"}\n"));
  for (const std::string_view array :
       {R"([{"text": "a]\" ["}, {"text": "b"}])",
        "\n [\n  {\n    \"text\": \"a]\\\" [\"\n  },\n  {\"text\":\n\"b\"}\r\n]\n\n",
        "\xEF\xBB\xBF[{\"text\": \"a]\\\" [\", \"more\": [{}, [1]]},\n{\"text\": \"b\"}]\n"}) {
    EXPECT_EQ(tokens_of(read("train.json", array).examples), lines) << array;
    EXPECT_EQ(tokens_of(read_lines(array)), lines) << array;
  }
  const Dataset chats = read("train.json", fmt::format("[{0},\n{0}]", kChat),
                             {.loss_tokens = LossTokens::completion});
  EXPECT_EQ(chats.report.format, "chats");
  EXPECT_EQ(chats.examples.size(), 2u);
}

TEST_F(DatasetTest, NamesTheItemOfAnArrayAtFault) {
  const auto expect_fault = [&](std::string_view array, const std::string& part) {
    SCOPED_TRACE(array);
    expect_error(ErrorCode::invalid, {part}, [&] { read("train.json", array); });
  };
  expect_fault("[]", "train.json: found no example");
  expect_fault("[\n", "train.json:2: found the end of the file, expected an item");
  expect_fault(R"([{"text": "a"}, {"text": 1}])",
               "train.json[1]: text: found 1, expected a string");
  expect_fault(R"([{"text": 2}, {"text": 1}])", "train.json: 2 examples at fault:");
  expect_fault(R"([{"text": "a"}, 7])", "train.json[1]: found 7, expected an object");
  expect_fault(R"([{"text": "a"} {"text": "b"}])",
               R"(train.json:1: found "{\"text\": \"b\"}]", expected a comma or ] after)");
  expect_fault("[{\"text\": \"a\"},\n]", "train.json:2: found \"]\", expected an item");
  expect_fault(R"([{"text": "a"}] {})", R"(found "{}", expected nothing after the array)");
  expect_fault(R"([{"text": "a"}, {"text": "b])", "train.json");
  expect_fault("[" + std::string(100, '[') + std::string(101, ']'), "train.json[0]: ");
  expect_error(ErrorCode::invalid, {"train.jsonl:2: found an array, expected an object"},
               [&] { read_lines("{\"text\": \"a\"}\n[{\"text\": \"a\"}]\n"); });
  expect_error(ErrorCode::invalid, {"train.jsonl:2: "},
               [&] { read_lines("{\"text\": \"a\"}\n" + std::string(100, '[')); });
  expect_fault("{\n  \"text\": \"a\"\n}\n",
               "train.json: found a JSON object over several lines, expected one object a line");
}

// Random values, cut where a parser says that they end.
TEST_F(DatasetTest, FindsTheItemsOfAnArrayWhateverTheyHold) {
  std::mt19937 random(3);
  const std::vector<std::string> pieces = {"1",  "null", R"("a,]}\"\\")", "-2.5e3",
                                           "[]", "{}",   "\"\""};
  const std::function<std::string(int)> value = [&](int depth) -> std::string {
    const auto kind = random() % (depth > 3 ? 1 : 3);
    if (kind == 0) return pieces[random() % pieces.size()];
    std::string text = kind == 1 ? "[" : "{";
    const auto count = random() % 4;
    for (uint32_t i = 0; i < count; ++i) {
      text += fmt::format("{}{}{}", i > 0 ? " ,\n" : "",
                          kind == 1 ? "" : "\"]k\" : ", value(depth + 1));
    }
    return text + (kind == 1 ? "]" : "}");
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> expected(random() % 5);
    std::string array = " [ ";
    for (size_t i = 0; i < expected.size(); ++i) {
      expected[i] = value(0);
      array += fmt::format("{}{}{}", i > 0 ? "," : "", expected[i], random() % 2 == 0 ? " \n" : "");
    }
    array += "] \n";
    JsonArrayItems items(array, "a.json");
    std::vector<std::string> found;
    while (const auto item = items.next()) found.emplace_back(*item);
    EXPECT_EQ(found, expected) << array;
  }
}

TEST_F(DatasetTest, RefusesJudgedAnswersWhateverTheirRows) {
  const auto expect_refused = [&](const std::string& line, const std::string& part) {
    SCOPED_TRACE(line);
    expect_error(ErrorCode::unsupported, {"train.jsonl:2: ", part, "expected an answer to learn"},
                 [&] { read_lines(fmt::format("{{\"text\": \"a\"}}\n{}\n", line)); });
  };
  for (const char* label : {"false", "true", "0", "1"}) {
    expect_refused(
        fmt::format(R"({{"prompt": "a", "completion": "b", "label": {}, "text": ""}})", label),
        fmt::format(R"(found a judged answer ("label": {}, as KTO takes them))", label));
  }
  expect_refused(R"({"messages": [], "label": false})", "KTO");
  expect_refused(R"({"conversations": [], "kto_tag": true})", R"(judged answer ("kto_tag": true)");
  expect_refused(R"({"prompt": "a", "chosen": "b", "rejected": "c"})",
                 R"(found a preference (the key "chosen": a pair of answers, as DPO takes them))");
  expect_refused(R"({"chosen": [], "rejected": [], "messages": []})", "preference");
  expect_refused(R"({"text": "a", "rejected": "c"})", R"(preference (the key "rejected")");
  // Classes of texts, and empty columns.
  EXPECT_EQ(read_lines(R"({"text": "a", "label": 1, "chosen": null, "kto_tag": null})").size(), 1u);
  EXPECT_EQ(read_lines(R"({"prompt": "a", "completion": "b", "label": "spam"})").size(), 1u);
}

TEST_F(DatasetTest, RefusesTablesArchivesAndDocuments) {
  const auto expect_refused = [&](std::string_view name, std::string_view text,
                                  const std::string& part) {
    SCOPED_TRACE(name);
    expect_error(ErrorCode::unsupported,
                 {std::string(name) + ": found " + part,
                  "expected JSON Lines (.jsonl), a JSON array (.json) or a plain text"},
                 [&] { read(name, text); });
  };
  expect_refused("a.csv", "prompt,completion\na,b\n", "a table (CSV)");
  expect_refused("a.TSV", "prompt\tcompletion\na\tb\n", "a table (CSV)");
  expect_refused("a.parquet", "PAR1", "a table in binary form");
  expect_refused("a.jsonl.gz", "x", "an archive");
  expect_refused("a.xlsx", "x", "a document or a table in binary form");
  expect_refused("a", "PAR1\x15\x04", "a Parquet file");
  expect_refused("a.txt", "%PDF-1.7\n", "a PDF document");
  expect_refused("a.txt", std::string(kChat) + "\n", "an example in JSON, which would be learnt");
  expect_refused("a.txt", fmt::format("[\n {}]", kChat), "an example in JSON");
  EXPECT_EQ(read("a.txt", "{\"city\": \"Oslo\"} is JSON.").report.format, "plain text");
  EXPECT_EQ(read("a.txt", "[1] A note.").report.format, "plain text");
  EXPECT_EQ(read("a.ndjson", kChat).report.format, "chats");
}

TEST_F(DatasetTest, NamesLinesThatAreNoExamples) {
  const auto expect_fault = [&](std::string_view line, const std::string& part) {
    SCOPED_TRACE(line);
    expect_error(ErrorCode::invalid, {"train.jsonl:1: ", part}, [&] { read_lines(line); });
  };
  expect_fault("{\"text\": \"a\"", "");
  expect_fault("{\"text\": \"a\"} {}", "");
  expect_fault("{\"text\": \"a\", \"text\": \"b\"}", "");
  expect_fault("\"a\"", "found \"a\", expected an object");
  expect_fault("{}",
               "found no key, expected messages, or conversations, or prompt and completion, or "
               "instruction and output, or text");
  expect_fault(
      R"({"prompt": "a", "answer": "b"})",
      R"(found the keys "prompt", "answer", expected messages, or conversations, or prompt)");
  expect_fault("{\"text\": \"a\xFF\"}", "found byte 0xFF at line 1, byte 12, expected UTF-8");
  expect_fault("{\"text\": \"" + std::string(kMaxLineBytes, 'a') + "\"}",
               "the line has more than 8388608 bytes");
}

TEST_F(DatasetTest, ChoosesTheFormatByTheFirstLine) {
  EXPECT_EQ(read("a.jsonl", kChat).report.format, "chats");
  EXPECT_EQ(read("a.jsonl", R"({"text": "a", "messages": [{"role": "user", "content": "b"}]})")
                .report.format,
            "chats");
  EXPECT_EQ(read("a.jsonl", R"({"text": "a", "prompt": "b", "completion": "c"})").report.format,
            "prompts and completions");
  EXPECT_EQ(read("a.jsonl", R"({"text": "a", "prompt": "b"})").report.format, "texts");
  expect_error(
      ErrorCode::invalid,
      {R"(train.jsonl:3: found the keys "text", expected messages, as in the lines before)"},
      [&] { read_lines(fmt::format("{}\n\n{}", kChat, R"({"text": "a"})")); });
}

TEST_F(DatasetTest, NamesAllLinesAtFaultUpToTwenty) {
  std::string text = "{\"text\": \"a\"}\n";
  for (int i = 2; i <= 3; ++i) text += fmt::format("{{\"text\": {}}}\n", i);
  const std::string two = error_message(ErrorCode::invalid, [&] { read_lines(text); });
  EXPECT_THAT(two, HasSubstr("train.jsonl: 2 lines at fault:\n  "));
  EXPECT_THAT(two, HasSubstr("train.jsonl:2: text: found 2, expected a string\n  "));
  EXPECT_THAT(two, HasSubstr("train.jsonl:3: text: found 3, expected a string"));
  for (int i = 4; i <= 30; ++i) text += fmt::format("{{\"text\": {}}}\n", i);
  const std::string many = error_message(ErrorCode::invalid, [&] { read_lines(text); });
  EXPECT_THAT(many, HasSubstr("train.jsonl: the first 20 lines at fault:\n"));
  EXPECT_THAT(many, HasSubstr("train.jsonl:21: text"));
  EXPECT_THAT(many, Not(HasSubstr("train.jsonl:22: ")));
}

TEST_F(DatasetTest, CutsLongExamplesAndSaysSo) {
  const Dataset dataset =
      read("train.jsonl", "{\"text\": \"one two three four five six\"}\n{\"text\": \"one\"}\n",
           {.max_seq_length = 4});
  const std::vector<TokenId> whole = tokenizer().encode("one two three four five six");
  ASSERT_EQ(dataset.examples.size(), 2u);
  EXPECT_EQ(dataset.examples[0].tokens, std::vector<int32_t>(whole.begin(), whole.begin() + 4));
  EXPECT_THAT(dataset.examples[0].counts, ElementsAre(0, 1, 1, 1));
  EXPECT_EQ(dataset.report.num_truncated, 1);
  EXPECT_EQ(dataset.report.num_dropped, 0);
  EXPECT_EQ(dataset.report.longest, static_cast<int64_t>(whole.size()) + 1);
  const std::vector<std::string> warnings = dataset_warnings(dataset.report);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0],
              HasSubstr(fmt::format("1 of 2 examples are longer than 4 tokens and were cut; the "
                                    "longest has {}",
                                    whole.size() + 1)));
}

TEST_F(DatasetTest, DropsExamplesWhoseCompletionIsCutAway) {
  const std::string longer =
      R"({"messages": [{"role": "user", "content": "Hi and hi and hi and hi and hi and hi"},)"
      R"( {"role": "assistant", "content": "Hello"}]})";
  const auto prompt = static_cast<int64_t>(
      tokenizer().encode("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n").size());
  const DatasetOptions options{.loss_tokens = LossTokens::completion, .max_seq_length = prompt + 1};
  const Dataset dataset = read("train.jsonl", fmt::format("{}\n{}\n", longer, kChat), options);
  ASSERT_EQ(dataset.examples.size(), 1u);
  EXPECT_EQ(dataset.examples[0].num_counted(), 1);
  EXPECT_EQ(dataset.examples[0].counts.back(), 1);
  EXPECT_EQ(dataset.report.num_dropped, 1);
  EXPECT_EQ(dataset.report.num_truncated, 1);
  EXPECT_EQ(dataset_warnings(dataset.report).size(), 2u);
  expect_error(ErrorCode::invalid, {"nothing to learn is left of all 1 examples", "longest has"},
               [&] { read("train.jsonl", longer, options); });
}

TEST_F(DatasetTest, KeepsAnAccount) {
  const Dataset dataset = read("train.jsonl", fmt::format("{}\n{}\n", kChat, kChat),
                               {.loss_tokens = LossTokens::completion});
  const DatasetReport& report = dataset.report;
  EXPECT_EQ(report.num_examples, 2);
  EXPECT_EQ(report.num_tokens, 2 * dataset.examples[0].num_tokens());
  EXPECT_EQ(report.num_counted, 2 * dataset.examples[0].num_counted());
  EXPECT_EQ(report.longest, dataset.examples[0].num_tokens());
  EXPECT_GE(report.memory_bytes, 5 * report.num_tokens + 2 * static_cast<int64_t>(sizeof(Example)));
  EXPECT_TRUE(dataset_warnings(report).empty());
}

TEST_F(DatasetTest, StopsAtItsLimits) {
  const std::string text = "{\"text\": \"a\"}\n{\"text\": \"b\"}\n{\"text\": \"c\"}\n";
  EXPECT_EQ(read("train.jsonl", text, {.max_examples = 3, .max_tokens = 6}).examples.size(), 3u);
  expect_error(ErrorCode::exhausted, {"train.jsonl:3: more than 2 examples or 6 tokens"},
               [&] { read("train.jsonl", text, {.max_examples = 2, .max_tokens = 6}); });
  expect_error(ErrorCode::exhausted, {"train.jsonl:3: more than 3 examples or 5 tokens"},
               [&] { read("train.jsonl", text, {.max_examples = 3, .max_tokens = 5}); });
  expect_error(ErrorCode::invalid, {"found 1, expected at least 2 tokens"},
               [&] { read("train.jsonl", text, {.max_seq_length = 1}); });
}

TEST_F(DatasetTest, FindsTheFilesOfADirectory) {
  const std::filesystem::path directory = files_.directory();
  expect_error(ErrorCode::not_found, {"found no train.jsonl"},
               [&] { find_dataset_files(directory); });
  const std::string train = files_.write("train.jsonl", "");
  EXPECT_EQ(find_dataset_files(directory).train, train);
  EXPECT_FALSE(find_dataset_files(directory).valid);
  const std::string valid = files_.write("valid.jsonl", ""), test = files_.write("test.jsonl", "");
  EXPECT_EQ(find_dataset_files(directory).valid, valid);
  EXPECT_EQ(find_dataset_files(directory).test, test);
  EXPECT_EQ(find_dataset_files(valid).train, valid);
  EXPECT_FALSE(find_dataset_files(valid).test);
  const TrainingFiles arrays;
  EXPECT_EQ(find_dataset_files(std::filesystem::path(arrays.write("train.json", "")).parent_path())
                .train.filename(),
            "train.json");
  expect_error(ErrorCode::not_found, {"nowhere: no such file or directory"},
               [&] { find_dataset_files(directory / "nowhere"); });
  expect_error(ErrorCode::invalid, {directory.string()},
               [&] { read_dataset(directory, model(), {}); });
}

}  // namespace
}  // namespace paceline
