// Decisions of the facade: exact log-probabilities, equal bits however questions are asked, labels
// of several tokens, calibration, and the input computed once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "base/json_cursor.h"
#include "load/loaded_model.h"
#include "load/stored_model.h"
#include "models/decoder_config.h"
#include "paceline/llm.h"
#include "tests/expect_error.h"
#include "tests/llm/equalities.h"
#include "tests/models/adapter_directory.h"
#include "tests/source_path.h"
#include "tests/test_directory.h"
#include "tests/test_scale.h"
#include "text/decide_job.h"

namespace paceline::testing {
namespace {

constexpr char kBundled[] = "models/paceline-10m";
const std::string kInput =
    "The old house stood by the sea, and nobody had lived in it since the captain sailed away.";

LoadOptions bundled() {
  return {.model = source_path(kBundled), .max_model_len = 512, .num_threads = 1};
}

DecisionQuestion choice(size_t count) {
  DecisionQuestion question{.kind = QuestionKind::choice, .instructions = "Which number is it?"};
  for (size_t i = 0; i < count; ++i) question.options.push_back({.value = fmt::format("n{}", i)});
  return question;
}

std::vector<DecisionQuestion> all_kinds() {
  return {{.instructions = "Is the house old?"},
          {.kind = QuestionKind::choice,
           .instructions = "Where is the house?",
           .options = {{.value = "sea", .description = "by the water"},
                       {.value = "hill"},
                       {.value = true},
                       {.value = "true"}}},
          {.kind = QuestionKind::score,
           .instructions = "How lonely is it?",
           .options = {{.value = "not at all"}, {.value = "somewhat"}, {.value = "very"}}},
          choice(30)};
}

// Everything but the usage.
void expect_same_answer(const DecisionAnswer& found, const DecisionAnswer& expected) {
  EXPECT_EQ(found.probabilities, expected.probabilities);
  EXPECT_EQ(found.best, expected.best);
  EXPECT_EQ(found.score, expected.score);
  EXPECT_EQ(found.confidence, expected.confidence);
  EXPECT_EQ(found.logprobs, expected.logprobs);
  EXPECT_EQ(found.label_mass, expected.label_mass);
  EXPECT_EQ(found.argmax_is_label, expected.argmax_is_label);
}

void expect_same_answers(const Decisions& found, const Decisions& expected) {
  ASSERT_EQ(found.answers.size(), expected.answers.size());
  for (size_t i = 0; i < expected.answers.size(); ++i) {
    SCOPED_TRACE(i);
    expect_same_answer(found.answers[i], expected.answers[i]);
  }
}

// The log-probability of `label` after the prompt of a question, as score() has it.
float scored(LLM& llm, const std::string& question, const std::string& label) {
  const std::string prompt =
      "<|im_start|>user\nRead the input, then answer the question about it.\n\nInput:\n" + kInput +
      "\n\nQuestion:\n" + question + "<|im_end|>\n<|im_start|>assistant\n";
  std::vector<int32_t> ids = llm.tokenize(prompt);
  const size_t length = ids.size();
  for (const int32_t id : llm.tokenize(label)) ids.push_back(id);
  const std::vector<Logprob> tokens = llm.score(ids);
  double sum = 0;
  for (size_t i = length; i < tokens.size(); ++i) sum += double{*tokens[i].logprob};
  return static_cast<float>(sum);
}

TEST(Decide, LogProbabilitiesAreThoseOfScore) {
  LLM llm = LLM::load(bundled());
  const Decisions decisions = llm.decide(kInput, all_kinds());
  const DecisionAnswer& predicate = decisions.answers[0];
  EXPECT_EQ(predicate.logprobs[0], scored(llm, "Is the house old?\nAnswer Yes or No.", "Yes"));
  EXPECT_EQ(predicate.logprobs[1], scored(llm, "Is the house old?\nAnswer Yes or No.", "No"));
  const std::string where =
      "Where is the house?\nA: \"sea\" (by the water)\nB: \"hill\"\nC: true\nD: \"true\"\n"
      "Answer with the letter.";
  EXPECT_EQ(decisions.answers[1].logprobs[2], scored(llm, where, "C"));
  const std::string lonely =
      "How lonely is it?\n0: not at all\n1: somewhat\n2: very\nAnswer with the number.";
  EXPECT_EQ(decisions.answers[2].logprobs[2], scored(llm, lonely, "2"));
  std::string numbers = "Which number is it?\n";
  for (int i = 0; i < 30; ++i) numbers += fmt::format("{:02}: n{}\n", i + 1, i);
  EXPECT_EQ(llm.tokenize("17").size(), 2u) << "labels of several tokens";
  EXPECT_EQ(decisions.answers[3].logprobs[16],
            scored(llm, numbers + "Answer with the number.", "17"));
}

TEST(Decide, AnswersFollowFromLogProbabilities) {
  LLM llm = LLM::load(bundled());
  const Decisions decisions = llm.decide(kInput, all_kinds());
  for (const DecisionAnswer& answer : decisions.answers) {
    double mass = 0;
    for (const float logprob : answer.logprobs) mass += std::exp(double{logprob});
    EXPECT_FLOAT_EQ(answer.label_mass, static_cast<float>(mass));
    EXPECT_NEAR(std::accumulate(answer.probabilities.begin(), answer.probabilities.end(), 0.0), 1,
                1e-6);
    for (size_t i = 0; i < answer.logprobs.size(); ++i) {
      EXPECT_NEAR(answer.probabilities[i], std::exp(double{answer.logprobs[i]}) / mass, 1e-6);
    }
    const float best = *std::max_element(answer.probabilities.begin(), answer.probabilities.end());
    EXPECT_EQ(answer.probabilities[answer.best], best);
    const auto count = static_cast<float>(answer.probabilities.size());
    EXPECT_NEAR(answer.confidence, (count * best - 1) / (count - 1), 1e-6);
  }
  const DecisionAnswer& score = decisions.answers[2];
  EXPECT_NEAR(score.score, score.probabilities[1] + 2 * score.probabilities[2], 1e-6);
  EXPECT_EQ(decisions.answers[0].score, 0);
}

TEST(Decide, RequestsAreMadeWhenTheyAreAskedFor) {
  const auto model = load_model(bundled());
  const TextModel text = text_model(*model);
  const DecideJob job(text, kInput, all_kinds(), {.content_free_input = "N/A"});
  // A row for each predicate, small choice and score; the choice of 30 has labels of two tokens.
  EXPECT_GT(job.num_requests(), 2 * all_kinds().size());
  const GenerateRequest first = job.request(0);
  EXPECT_TRUE(first.prefix.hold);
  size_t num_held = 0;
  for (size_t i = 0; i < job.num_requests(); ++i) {
    const GenerateRequest one = job.request(i);
    num_held += one.prefix.hold ? 1 : 0;
    EXPECT_EQ(job.request(i).prompt, one.prompt);
    EXPECT_FALSE(one.sampling.logprob_token_ids.empty());
  }
  EXPECT_EQ(num_held, 2u);
}

TEST(Decide, OrderBatchAndNumberOfQuestionsChangeNoBit) {
  const AdapterDirectory directory;
  LoadOptions base = bundled();
  const DecoderConfig config = read_model_config(open_model_source(base.model), LoadFormat::files);
  base.loras = {{.name = "first", .path = directory.write("first", config, {.size = 0.1f})}};
  const std::vector<DecisionQuestion> questions = all_kinds();
  const std::vector<DecisionQuestion> reversed(questions.rbegin(), questions.rend());
  const DecideOptions asked{.content_free_input = "N/A", .lora = "first"};
  LoadOptions one_by_one = base;
  one_by_one.max_num_seqs = 1;
  one_by_one.prefix_caching = false;
  LLM reference = LLM::load(one_by_one);
  Decisions expected;
  for (const DecisionQuestion& question : questions) {
    expected.answers.push_back(reference.decide(kInput, std::span(&question, 1), asked).answers[0]);
  }
  const std::set<std::string> usual = {"chunks_of_7", "three_at_a_time", "small_blocks"};
  for (const auto& [name, change] : executions()) {
    if (name == "a_tight_cache") continue;  // of 160 positions
    if (!is_full_scale() && !usual.contains(name)) continue;
    SCOPED_TRACE(name);
    LoadOptions options = base;
    options.num_threads = 2;
    change(options);
    LLM llm = LLM::load(options);
    const std::vector<std::string> inputs = {"Another input.", kInput};
    expect_same_answers(std::get<Decisions>(llm.decide(inputs, questions, asked)[1]), expected);
    Decisions backwards = llm.decide(kInput, reversed, asked);  // of a warm cache
    std::reverse(backwards.answers.begin(), backwards.answers.end());
    expect_same_answers(backwards, expected);
  }
}

TEST(Decide, AdaptersMatter) {
  const AdapterDirectory directory;
  LoadOptions options = bundled();
  const DecoderConfig config =
      read_model_config(open_model_source(options.model), LoadFormat::files);
  options.loras = {{.name = "first", .path = directory.write("first", config, {.size = 0.1f})}};
  LLM llm = LLM::load(options);
  EXPECT_NE(llm.decide(kInput, all_kinds(), {.lora = "first"}).answers[0].logprobs,
            llm.decide(kInput, all_kinds()).answers[0].logprobs);
}

TEST(Decide, TwoHundredFiftyFiveChoices) {
  // 255 lines don't fit the bundled model's context.
  LLM llm = LLM::load({.model = source_path(kBundled), .max_kv_size = 512, .num_threads = 1});
  const DecisionQuestion question = choice(255);
  const Decisions decisions = llm.decide("x", std::span(&question, 1));
  EXPECT_EQ(decisions.answers[0].probabilities.size(), 255u);
  EXPECT_NEAR(std::accumulate(decisions.answers[0].probabilities.begin(),
                              decisions.answers[0].probabilities.end(), 0.0),
              1, 1e-5);
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The rows of all steps in a trace.
int64_t rows_of(const std::filesystem::path& trace) {
  std::ifstream file(trace);
  int64_t rows = 0;
  for (std::string line; std::getline(file, line);) {
    const Json json = parse_json(line, "trace");
    if (const Json* count = json.find_value("num_rows")) rows += *count->integer();
  }
  return rows;
}

TEST(Decide, TheInputIsComputedOnceForAllQuestions) {
  const TestDirectory directory;
  LoadOptions options = bundled();
  options.trace_file = directory.path() / "trace.jsonl";
  LLM llm = LLM::load(options);
  std::vector<DecisionQuestion> questions;
  for (int i = 0; i < 40; ++i) {
    questions.push_back({.instructions = fmt::format("Is the house {} years old?", i)});
  }
  const Decisions decisions = llm.decide(kInput, questions);
  llm.close();
  const int64_t rows = rows_of(options.trace_file);
  EXPECT_GE(rows, decisions.usage.prompt_tokens);
  // Of the block in which the input ends each question computes its part again.
  EXPECT_LT(rows, decisions.usage.prompt_tokens + 40 * options.block_size);
}

TEST(Decide, AnInputStaysInTheCache) {
  LLM llm = LLM::load(bundled());
  const std::vector<DecisionQuestion> questions = all_kinds();
  EXPECT_EQ(llm.decide(kInput, std::span(questions).first(1)).usage.cached_tokens, 0);
  EXPECT_GE(llm.decide(kInput, std::span(questions).last(1)).usage.cached_tokens, 32);
  EXPECT_EQ(
      llm.decide(kInput, std::span(questions).last(1), {.cache_salt = "other"}).usage.cached_tokens,
      0);
}

TEST(Decide, ATemperatureFlattens) {
  LLM llm = LLM::load(bundled());
  const Decisions plain = llm.decide(kInput, all_kinds());
  const Decisions flat = llm.decide(kInput, all_kinds(), {.temperature = 2});
  for (size_t q = 0; q < plain.answers.size(); ++q) {
    const DecisionAnswer& answer = flat.answers[q];
    EXPECT_EQ(answer.logprobs, plain.answers[q].logprobs);
    double total = 0;
    for (const float p : plain.answers[q].probabilities) total += std::sqrt(double{p});
    for (size_t i = 0; i < answer.probabilities.size(); ++i) {
      EXPECT_NEAR(answer.probabilities[i],
                  std::sqrt(double{plain.answers[q].probabilities[i]}) / total, 1e-5);
    }
  }
}

TEST(Decide, WhatTheModelPrefersAnywayIsSubtracted) {
  LLM llm = LLM::load(bundled());
  // An input that says what the content-free one says has no preference left.
  const Decisions same = llm.decide(kInput, all_kinds(), {.content_free_input = kInput});
  for (const DecisionAnswer& answer : same.answers) {
    for (const float p : answer.probabilities) {
      EXPECT_FLOAT_EQ(p, 1.0f / static_cast<float>(answer.probabilities.size()));
    }
    EXPECT_NEAR(answer.confidence, 0, 1e-6);
  }
  const Decisions plain = llm.decide(kInput, all_kinds());
  const Decisions nothing = llm.decide("N/A", all_kinds());
  const Decisions corrected = llm.decide(kInput, all_kinds(), {.content_free_input = "N/A"});
  for (size_t q = 0; q < plain.answers.size(); ++q) {
    EXPECT_EQ(corrected.answers[q].logprobs, plain.answers[q].logprobs);
    const auto ratio = [&](size_t i) {
      return double{plain.answers[q].logprobs[i]} - double{nothing.answers[q].logprobs[i]};
    };
    const std::vector<float>& p = corrected.answers[q].probabilities;
    EXPECT_NEAR(std::log(double{p[0]} / double{p[1]}), ratio(0) - ratio(1), 1e-4);
  }
}

TEST(Decide, SpecialTokensOfTextsAreText) {
  LLM llm = LLM::load(bundled());
  const DecisionQuestion plain{.instructions = "Is it <|im_end|> old?"};
  const DecisionAnswer answer = llm.decide("a <|im_start|> b", std::span(&plain, 1)).answers[0];
  std::vector<int32_t> ids;
  const auto add = [&](const std::string& text, bool as_text) {
    for (const int32_t id : llm.tokenize(text, false, as_text)) ids.push_back(id);
  };
  add("<|im_start|>", false);
  add("user\nRead the input, then answer the question about it.\n\nInput:\na <|im_start|> b\n\n"
      "Question:\n",
      true);
  add("Is it <|im_end|> old?\nAnswer Yes or No.", true);
  add("<|im_end|>\n<|im_start|>assistant\n", false);
  add("Yes", false);
  EXPECT_EQ(answer.logprobs[0], *llm.score(ids).back().logprob);
}

TEST(Decide, WithoutAChatTemplateThePromptIsText) {
  const TestDirectory directory;
  for (const auto& entry : std::filesystem::directory_iterator(source_path(kBundled))) {
    const std::string name = entry.path().filename();
    if (name.starts_with("chat_template") || name.starts_with("tokenizer")) continue;
    std::filesystem::create_symlink(entry.path(), directory.path() / name);
  }
  // Without the tokens of ChatML there is no template for it.
  std::string tokenizer = read_file(source_path(kBundled) + "/tokenizer.json");
  for (size_t at = 0; (at = tokenizer.find("<|im_", at)) != std::string::npos;) {
    tokenizer.replace(at, 5, "<|other_");
  }
  directory.write("tokenizer.json", tokenizer);
  LoadOptions options = bundled();
  options.model = directory.path();
  LLM llm = LLM::load(options);
  const DecisionQuestion question{.instructions = "Is it old?"};
  const DecisionAnswer answer = llm.decide(kInput, std::span(&question, 1)).answers[0];
  std::vector<int32_t> ids =
      llm.tokenize("Read the input, then answer the question about it.\n\nInput:\n" + kInput +
                   "\n\nQuestion:\nIs it old?\nAnswer Yes or No.\nAnswer: Yes");
  EXPECT_EQ(answer.logprobs[0], *llm.score(ids).back().logprob);
}

TEST(Decide, WrongQuestionsNameThemselves) {
  LLM llm = LLM::load(bundled());
  const auto expect_wrong = [&](std::vector<DecisionQuestion> questions,
                                const DecideOptions& options,
                                const std::vector<std::string>& words) {
    expect_error(ErrorCode::invalid, words, [&] { llm.decide(kInput, questions, options); });
  };
  const DecisionQuestion fine{.instructions = "Is it?"};
  expect_wrong({}, {}, {"questions: found 0, expected 1 to 400"});
  expect_wrong(std::vector<DecisionQuestion>(401, fine), {}, {"questions: found 401"});
  expect_wrong({fine, {}}, {}, {"questions[1].instructions: empty"});
  expect_wrong({choice(1)}, {}, {"questions[0].choices: found 1, expected 2 to 255"});
  expect_wrong({choice(256)}, {}, {"questions[0].choices: found 256"});
  DecisionQuestion twice = choice(3);
  twice.options[2].value = "n0";
  expect_wrong({twice}, {}, {"questions[0].choices[2]: the same value as questions[0].choices[0]"});
  DecisionQuestion levels = choice(11);
  levels.kind = QuestionKind::score;
  expect_wrong({levels}, {}, {"questions[0].levels: found 11, expected 2 to 10"});
  expect_wrong({fine}, {.temperature = 0}, {"temperature: found 0, expected a number from 0.01"});
  expect_wrong({fine}, {.temperature = NAN}, {"temperature"});
  std::string lengthy;
  for (int i = 0; i < 600; ++i) lengthy += "word ";
  expect_error(ErrorCode::invalid, {"input", "--max-model-len"},
               [&] { llm.decide(lengthy, std::span(&fine, 1)); });
  expect_error(ErrorCode::not_found, {"lora"},
               [&] { llm.decide(kInput, std::span(&fine, 1), {.lora = "none"}); });
  LLM tokens = LLM::load({.model = source_path("tests/goldens/models/llama_plain")});
  expect_error(ErrorCode::not_found, {"tokenizer.json"},
               [&] { tokens.decide(kInput, std::span(&fine, 1)); });
}

}  // namespace
}  // namespace paceline::testing
