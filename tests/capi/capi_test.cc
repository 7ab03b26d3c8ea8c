// The API in C: what it gives is what the facade gives, and no misuse harms anybody.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "paceline/llm.h"
#include "paceline/paceline.h"
#include "paceline/training.h"
#include "tests/source_path.h"
#include "tests/test_directory.h"

namespace paceline {
namespace {

std::string bundled() { return source_path("models/paceline-10m"); }

class CApi : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    paceline_load_options options;
    paceline_load_options_init(&options);
    const std::string path = bundled();
    options.model = path.c_str();
    options.num_threads = 1;
    options.enable_lora = 1;
    ASSERT_EQ(paceline_load(&options, &model_), PACELINE_OK) << paceline_last_error();
    llm_ = new LLM(LLM::load({.model = path, .num_threads = 1}));
  }
  static void TearDownTestSuite() {
    paceline_free_model(model_);
    delete llm_;
  }

  static paceline_generate_options greedy(int64_t max_tokens) {
    paceline_generate_options options;
    paceline_generate_options_init(&options);
    options.max_tokens = max_tokens;
    options.temperature = 0;
    return options;
  }

  static paceline_model* model_;
  static LLM* llm_;
};

paceline_model* CApi::model_ = nullptr;
LLM* CApi::llm_ = nullptr;

// The call fails with this status, and its message has all the parts.
void expect_failure(paceline_status found, paceline_status expected,
                    const std::vector<std::string>& parts) {
  EXPECT_EQ(found, expected) << paceline_last_error();
  const std::string message = paceline_last_error();
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
  }
}

constexpr const char* kPrompt = "It was a dark and stormy night";

TEST_F(CApi, GeneratesWhatTheFacadeGenerates) {
  const Completion expected =
      llm_->generate(kPrompt, {.max_tokens = 24, .temperature = 0.0F, .logprobs = 2}).completion();
  paceline_generate_options options = greedy(24);
  options.num_top_logprobs = 2;
  paceline_generation* generation = nullptr;
  ASSERT_EQ(paceline_generate(model_, paceline_text_prompt(kPrompt), &options, &generation),
            PACELINE_OK);
  std::string text;
  const char* piece = nullptr;
  size_t size = 0;
  while (paceline_next_piece(generation, &piece, &size) == PACELINE_OK && piece != nullptr) {
    EXPECT_EQ(piece[size], '\0');
    text.append(piece, size);
  }
  const paceline_completion* found = nullptr;
  ASSERT_EQ(paceline_finish_generation(generation, &found), PACELINE_OK);
  EXPECT_EQ(text, *expected.text);
  EXPECT_EQ(std::string(found->text, found->text_size), *expected.text);
  EXPECT_EQ(std::vector(found->token_ids, found->token_ids + found->num_token_ids),
            expected.token_ids);
  EXPECT_EQ(found->finish, PACELINE_FINISH_LENGTH);
  EXPECT_EQ(found->stop_token, -1);
  EXPECT_EQ(found->usage.completion_tokens, 24);
  ASSERT_EQ(found->num_logprobs, expected.logprobs.size());
  for (size_t i = 0; i < found->num_logprobs; ++i) {
    EXPECT_EQ(found->logprobs[i].logprob, *expected.logprobs[i].logprob);
    ASSERT_EQ(found->logprobs[i].num_top, 2u);
    EXPECT_EQ(found->logprobs[i].top[1].token, expected.logprobs[i].top[1].token);
  }
  paceline_free_generation(generation);
}

TEST_F(CApi, ABatchHasAnErrorForEachPromptThatFails) {
  const std::vector<int32_t> bad = {99999999};
  const std::vector<paceline_prompt> prompts = {
      paceline_text_prompt("Once upon a time"),
      {.text = nullptr, .text_size = 0, .ids = bad.data(), .num_ids = 1},
      paceline_text_prompt(kPrompt)};
  paceline_generate_options options = greedy(8), seeded = greedy(8);
  seeded.temperature = 1;
  seeded.seed = 7;
  const std::vector<const paceline_generate_options*> each = {&options, &options, &seeded};
  const paceline_completions* found = nullptr;
  ASSERT_EQ(paceline_batch_generate(model_, prompts.data(), 3, each.data(), &found), PACELINE_OK);
  ASSERT_EQ(found->count, 3u);
  EXPECT_EQ(found->items[1].status, PACELINE_INVALID);
  EXPECT_NE(std::string(found->items[1].error).find("99999999"), std::string::npos);
  EXPECT_EQ(found->items[1].text, nullptr);
  const Completion drawn =
      llm_->generate(kPrompt, {.max_tokens = 8, .temperature = 1.0F, .seed = 7}).completion();
  EXPECT_EQ(found->items[2].text, *drawn.text);
  EXPECT_EQ(found->items[2].seed, 7u);
  paceline_free_completions(found);
}

TEST_F(CApi, ACallbackSeesEveryPieceAndMayStop) {
  struct Seen {
    std::string text;
    int num_pieces = 0;
    int most = 1000;
  };
  const auto take = [](const char* piece, size_t size, void* user) -> int {
    auto& seen = *static_cast<Seen*>(user);
    seen.text.append(piece, size);
    return ++seen.num_pieces >= seen.most ? 1 : 0;
  };
  const paceline_generate_options options = greedy(200);
  const paceline_completions* found = nullptr;
  Seen all, some{.text = {}, .num_pieces = 0, .most = 3};
  ASSERT_EQ(
      paceline_generate_all(model_, paceline_text_prompt(kPrompt), &options, take, &all, &found),
      PACELINE_OK);
  EXPECT_EQ(all.text, found->items[0].text);
  paceline_free_completions(found);
  ASSERT_EQ(
      paceline_generate_all(model_, paceline_text_prompt(kPrompt), &options, take, &some, &found),
      PACELINE_OK);
  EXPECT_EQ(some.num_pieces, 3);
  EXPECT_EQ(all.text.rfind(some.text, 0), 0u);
  paceline_free_completions(found);
}

TEST_F(CApi, ChatsWithAConstraint) {
  const char* messages = R"([{"role": "user", "content": "Is the sky blue?"}])";
  paceline_generate_options options = greedy(16);
  const char* choices[] = {"yes", "no"};
  options.constraint = PACELINE_CHOICE;
  options.choices = choices;
  options.num_choices = 2;
  paceline_generation* generation = nullptr;
  ASSERT_EQ(paceline_chat(model_, messages, nullptr, &options, &generation), PACELINE_OK)
      << paceline_last_error();
  const paceline_completion* found = nullptr;
  ASSERT_EQ(paceline_finish_generation(generation, &found), PACELINE_OK);
  EXPECT_TRUE(std::string(found->text) == "yes" || std::string(found->text) == "no") << found->text;
  paceline_free_generation(generation);
  const char* text = nullptr;
  ASSERT_EQ(paceline_apply_chat_template(model_, messages, nullptr, &text, nullptr), PACELINE_OK);
  EXPECT_NE(std::string(text).find("Is the sky blue?"), std::string::npos);
  paceline_free_text(text);
}

TEST_F(CApi, ClassifiesDecidesEmbedsAndScores) {
  const std::vector<paceline_prompt> prompts = {paceline_text_prompt("The weather was"),
                                                paceline_text_prompt("The king was")};
  const char* labels[] = {"good", "bad", "old"};
  const paceline_classifications* classes = nullptr;
  ASSERT_EQ(paceline_classify(model_, prompts.data(), 2, labels, 3, nullptr, &classes), PACELINE_OK)
      << paceline_last_error();
  const auto expected = llm_->classify("The king was", {.labels = {"good", "bad", "old"}});
  EXPECT_EQ(classes->items[1].label, *expected.label);
  EXPECT_EQ(std::vector(classes->items[1].scores, classes->items[1].scores + 3), expected.scores);
  paceline_free_classifications(classes);

  const paceline_vectors* vectors = nullptr;
  ASSERT_EQ(paceline_embed(model_, prompts.data(), 2, 0, nullptr, &vectors), PACELINE_OK);
  const paceline_vector& vector = vectors->items[0];
  EXPECT_EQ(std::vector(vector.values, vector.values + vector.num_values),
            llm_->embed("The weather was").values);
  paceline_free_vectors(vectors);

  const paceline_logprobs* logprobs = nullptr;
  ASSERT_EQ(paceline_score(model_, prompts[0], 0, nullptr, &logprobs), PACELINE_OK);
  const auto scored = llm_->score("The weather was");
  ASSERT_EQ(logprobs->count, scored.size());
  EXPECT_EQ(logprobs->items[0].has_logprob, scored[0].logprob ? 1 : 0);
  EXPECT_EQ(logprobs->items[1].logprob, *scored[1].logprob);
  paceline_free_logprobs(logprobs);

  const char* inputs[] = {"I love this."};
  const char* values[] = {"red", "green", "blue"};
  const paceline_question questions[] = {
      {PACELINE_PREDICATE, "Is it positive?", nullptr, nullptr, 0},
      {PACELINE_QUESTION_CHOICE, "Which colour?", values, nullptr, 3}};
  const paceline_decisions* decisions = nullptr;
  ASSERT_EQ(paceline_decide(model_, inputs, 1, questions, 2, 1.0F, nullptr, &decisions),
            PACELINE_OK)
      << paceline_last_error();
  ASSERT_EQ(decisions->items[0].num_answers, 2u);
  const paceline_answer& answer = decisions->items[0].answers[1];
  ASSERT_EQ(answer.num_probabilities, 3u);
  EXPECT_NEAR(answer.probabilities[0] + answer.probabilities[1] + answer.probabilities[2], 1, 1e-5);
  paceline_free_decisions(decisions);
}

TEST_F(CApi, TokensThereAndBack) {
  const int32_t* ids = nullptr;
  size_t count = 0;
  ASSERT_EQ(paceline_tokenize(model_, kPrompt, 30, 0, &ids, &count), PACELINE_OK);
  EXPECT_EQ(std::vector(ids, ids + count), llm_->tokenize(kPrompt));
  const char* text = nullptr;
  size_t size = 0;
  ASSERT_EQ(paceline_detokenize(model_, ids, count, 0, &text, &size), PACELINE_OK);
  EXPECT_EQ(std::string(text, size), kPrompt);
  paceline_free_text(text);
  paceline_free_ids(ids);
}

TEST_F(CApi, MemoryFiguresAndDescriptions) {
  paceline_memory use;
  ASSERT_EQ(paceline_memory_use(model_, &use), PACELINE_OK);
  EXPECT_GT(use.active_bytes, 0u);
  uint64_t old = 0;
  ASSERT_EQ(paceline_set_memory_limit(model_, use.active_bytes + (1u << 30), &old), PACELINE_OK);
  ASSERT_EQ(paceline_set_memory_limit(model_, old, &old), PACELINE_OK);
  EXPECT_EQ(old, use.active_bytes + (1u << 30));
  ASSERT_EQ(paceline_set_cache_limit(model_, UINT64_MAX, nullptr), PACELINE_OK);
  ASSERT_EQ(paceline_clear_cache(model_), PACELINE_OK);
  ASSERT_EQ(paceline_reset_peak(model_), PACELINE_OK);
  const paceline_model_info* info = nullptr;
  ASSERT_EQ(paceline_get_model_info(model_, &info), PACELINE_OK);
  EXPECT_EQ(info->vocab_size, llm_->model_info().vocab_size);
  EXPECT_EQ(info->has_tokenizer, 1);
  paceline_free_model_info(info);
  const paceline_device_info* device = nullptr;
  ASSERT_EQ(paceline_get_device_info(nullptr, &device), PACELINE_OK);
  EXPECT_GT(device->total_memory_bytes, 0u);
  paceline_free_device_info(device);
  paceline_metrics metrics;
  ASSERT_EQ(paceline_get_metrics(model_, &metrics), PACELINE_OK);
}

TEST_F(CApi, ThreadsShareAModelAndAnyOfThemCancels) {
  std::vector<std::thread> threads;
  const std::string expected =
      *llm_->generate(kPrompt, {.max_tokens = 12, .temperature = 0.0F}).completion().text;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const paceline_generate_options options = greedy(12);
      const paceline_completions* found = nullptr;
      ASSERT_EQ(paceline_generate_all(model_, paceline_text_prompt(kPrompt), &options, nullptr,
                                      nullptr, &found),
                PACELINE_OK);
      EXPECT_EQ(found->items[0].text, expected);
      paceline_free_completions(found);
    });
  }
  for (std::thread& thread : threads) thread.join();

  paceline_cancellation* cancellation = paceline_new_cancellation();
  paceline_request_options options;
  paceline_request_options_init(&options);
  options.cancellation = cancellation;
  paceline_cancel(cancellation);
  const paceline_prompt prompt = paceline_text_prompt(kPrompt);
  const paceline_vectors* vectors = nullptr;
  ASSERT_EQ(paceline_embed(model_, &prompt, 1, 0, &options, &vectors), PACELINE_OK);
  EXPECT_EQ(vectors->items[0].status, PACELINE_CANCELLED);
  paceline_free_vectors(vectors);
  paceline_free_cancellation(cancellation);
}

TEST_F(CApi, AQueueLetsOneLoopReadManyGenerations) {
  constexpr int kGenerations = 6;
  paceline_queue* queue = nullptr;
  ASSERT_EQ(paceline_new_queue(&queue), PACELINE_OK);
  std::vector<paceline_generation*> generations(kGenerations, nullptr);
  for (int i = 0; i < kGenerations; ++i) {
    paceline_generate_options options = greedy(6 + i);
    options.queue = queue;
    options.tag = i;
    ASSERT_EQ(paceline_generate(model_, paceline_text_prompt(kPrompt), &options,
                                &generations[static_cast<size_t>(i)]),
              PACELINE_OK);
  }
  std::vector<std::string> texts(kGenerations);
  int num_finished = 0;
  while (num_finished < kGenerations) {
    pollfd watched{paceline_queue_descriptor(queue), POLLIN, 0};
    ASSERT_EQ(poll(&watched, 1, 60000), 1);
    int64_t tags[2];
    for (size_t k = 0, count = paceline_take_ready(queue, tags, 2); k < count; ++k) {
      const auto tag = static_cast<size_t>(tags[k]);
      paceline_progress progress = PACELINE_PIECE;
      const char* piece = nullptr;
      size_t size = 0;
      while (progress == PACELINE_PIECE) {
        ASSERT_EQ(paceline_poll_piece(generations[tag], &progress, &piece, &size), PACELINE_OK);
        if (progress == PACELINE_PIECE) texts[tag].append(piece, size);
      }
      if (progress == PACELINE_FINISHED) ++num_finished;
    }
  }
  paceline_free_queue(queue);
  for (size_t i = 0; i < kGenerations; ++i) {
    const paceline_completion* found = nullptr;
    ASSERT_EQ(paceline_finish_generation(generations[i], &found), PACELINE_OK);
    EXPECT_EQ(texts[i], found->text);
    EXPECT_EQ(found->usage.completion_tokens, static_cast<int64_t>(6 + i));
    paceline_free_generation(generations[i]);
  }
  EXPECT_EQ(paceline_queue_descriptor(nullptr), -1);
  paceline_free_queue(nullptr);
}

TEST_F(CApi, AdaptersThatAreNotThere) {
  expect_failure(paceline_load_adapter(model_, "a", "/nowhere", 1), PACELINE_NOT_FOUND,
                 {"/nowhere"});
  expect_failure(paceline_load_adapter(model_, "", "/nowhere", 1), PACELINE_INVALID, {"name"});
  expect_failure(paceline_unload_adapter(model_, "a"), PACELINE_NOT_FOUND, {"adapter a"});
}

TEST_F(CApi, MisuseIsAnErrorThatSaysWhatIsMissing) {
  paceline_generation* generation = nullptr;
  const paceline_completions* completions = nullptr;
  const paceline_prompt prompt = paceline_text_prompt(kPrompt);
  expect_failure(paceline_generate(nullptr, prompt, nullptr, &generation), PACELINE_INVALID,
                 {"model", "NULL"});
  expect_failure(paceline_generate(model_, prompt, nullptr, nullptr), PACELINE_INVALID,
                 {"generation", "NULL"});
  expect_failure(paceline_generate(model_, {}, nullptr, &generation), PACELINE_INVALID, {"prompt"});
  EXPECT_EQ(generation, nullptr);
  paceline_generate_options blank = {};
  expect_failure(paceline_generate(model_, prompt, &blank, &generation), PACELINE_INVALID,
                 {"options.size", "_init"});
  blank.size = 1u << 20;
  expect_failure(paceline_generate(model_, prompt, &blank, &generation), PACELINE_INVALID,
                 {"options.size"});
  paceline_generate_options options = greedy(4);
  options.num_stop = 3;
  expect_failure(paceline_generate(model_, prompt, &options, &generation), PACELINE_INVALID,
                 {"options.stop", "NULL"});
  options = greedy(4);
  options.top_k = int64_t{1} << 40;
  expect_failure(paceline_generate(model_, prompt, &options, &generation), PACELINE_INVALID,
                 {"top_k"});
  options = greedy(4);
  options.constraint = 17;
  expect_failure(paceline_generate(model_, prompt, &options, &generation), PACELINE_INVALID,
                 {"constraint", "17"});
  expect_failure(paceline_chat(model_, "{not json", nullptr, nullptr, &generation),
                 PACELINE_INVALID, {"messages_json"});
  expect_failure(paceline_chat(model_, "{}", nullptr, nullptr, &generation), PACELINE_INVALID,
                 {"messages_json"});
  expect_failure(paceline_batch_generate(model_, nullptr, 2, nullptr, &completions),
                 PACELINE_INVALID, {"prompts"});
  EXPECT_EQ(paceline_next_piece(nullptr, nullptr, nullptr), PACELINE_INVALID);
  const char* piece = nullptr;
  expect_failure(paceline_next_piece(nullptr, &piece, nullptr), PACELINE_INVALID, {"generation"});
  paceline_load_options load;
  paceline_load_options_init(&load);
  paceline_model* none = nullptr;
  expect_failure(paceline_load(&load, &none), PACELINE_INVALID, {"options.model"});
  load.model = "/nowhere/at/all";
  expect_failure(paceline_load(&load, &none), PACELINE_NOT_FOUND, {"/nowhere/at/all"});
  load.kv_cache_memory_bytes = -5;
  expect_failure(paceline_load(&load, &none), PACELINE_INVALID, {"kv_cache_memory_bytes", "-5"});
  EXPECT_EQ(none, nullptr);
  paceline_free_model(nullptr);
  paceline_free_generation(nullptr);
  paceline_free_completions(nullptr);
  paceline_free_vectors(nullptr);
  paceline_free_ids(nullptr);
  paceline_free_text(nullptr);
  paceline_free_cancellation(nullptr);
  paceline_cancel(nullptr);
  paceline_cancel_generation(nullptr);
  EXPECT_STREQ(paceline_status_name(PACELINE_NOT_FOUND), "not_found");
}

// Older callers have shorter structures: what they don't know keeps its default.
TEST_F(CApi, AShorterStructureOfAnOlderCallerIsCompleted) {
  paceline_generate_options options = greedy(5);
  options.size = offsetof(paceline_generate_options, top_p);
  options.num_stop = 77;  // beyond what such a caller has
  const paceline_completions* found = nullptr;
  ASSERT_EQ(paceline_generate_all(model_, paceline_text_prompt(kPrompt), &options, nullptr, nullptr,
                                  &found),
            PACELINE_OK)
      << paceline_last_error();
  EXPECT_EQ(found->items[0].usage.completion_tokens, 5);
  paceline_free_completions(found);
}

TEST(CApiClosed, EveryCallOfAClosedModelFailsAndItsObjectsCanBeFreed) {
  paceline_load_options load;
  paceline_load_options_init(&load);
  const std::string path = bundled();
  load.model = path.c_str();
  load.num_threads = 1;
  paceline_model* model = nullptr;
  ASSERT_EQ(paceline_load(&load, &model), PACELINE_OK);
  paceline_generation* running = nullptr;
  paceline_generation* ended = nullptr;
  paceline_generate_options options;
  paceline_generate_options_init(&options);
  options.max_tokens = 3;
  const paceline_prompt prompt = paceline_text_prompt(kPrompt);
  ASSERT_EQ(paceline_generate(model, prompt, nullptr, &running), PACELINE_OK);
  ASSERT_EQ(paceline_generate(model, prompt, &options, &ended), PACELINE_OK);
  const paceline_completion* completion = nullptr;
  ASSERT_EQ(paceline_finish_generation(ended, &completion), PACELINE_OK);
  EXPECT_EQ(paceline_close(model), PACELINE_OK);
  EXPECT_EQ(paceline_close(model), PACELINE_OK);
  EXPECT_EQ(completion->usage.completion_tokens, 3);  // it stays
  const char* piece = nullptr;
  expect_failure(paceline_next_piece(running, &piece, nullptr), PACELINE_INVALID, {"closed"});
  paceline_cancel_generation(running);
  paceline_generation* later = nullptr;
  expect_failure(paceline_generate(model, prompt, nullptr, &later), PACELINE_INVALID, {"closed"});
  paceline_memory use;
  expect_failure(paceline_memory_use(model, &use), PACELINE_INVALID, {"closed"});
  paceline_free_generation(running);
  paceline_free_model(model);
  paceline_free_generation(ended);
}

TEST(CApiContext, TheCallersLoopHasTheTokensOfTheEngine) {
  paceline_load_options load;
  paceline_load_options_init(&load);
  const std::string path = bundled();
  load.model = path.c_str();
  load.num_threads = 1;
  paceline_context* context = nullptr;
  ASSERT_EQ(paceline_new_context(&load, 256, &context), PACELINE_OK) << paceline_last_error();
  LLM llm = LLM::load({.model = path, .num_threads = 1});
  const auto ids = llm.tokenize(kPrompt, true);
  const auto expected = llm.generate(kPrompt, {.max_tokens = 10, .temperature = 0.0F}).completion();
  int32_t sequence = -1;
  ASSERT_EQ(paceline_new_sequence(context, 0, &sequence), PACELINE_OK);
  std::vector<float> logits(static_cast<size_t>(paceline_context_vocab_size(context)));
  ASSERT_EQ(
      paceline_prefill(context, sequence, ids.data(), ids.size(), 3, nullptr, 0, logits.data()),
      PACELINE_OK)
      << paceline_last_error();
  std::vector<int32_t> found;
  for (int i = 0; i < 10; ++i) {
    const auto best =
        static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    found.push_back(best);
    const paceline_decode_entry entry = {sequence, best};
    ASSERT_EQ(paceline_decode_batch(context, &entry, 1, logits.data()), PACELINE_OK);
  }
  EXPECT_EQ(found, expected.token_ids);
  int64_t length = 0;
  ASSERT_EQ(paceline_sequence_length(context, sequence, &length), PACELINE_OK);
  EXPECT_EQ(length, static_cast<int64_t>(ids.size()) + 10);
  int32_t forked = -1;
  ASSERT_EQ(paceline_fork_sequence(context, sequence, &forked), PACELINE_OK);
  ASSERT_EQ(paceline_free_sequence(context, sequence), PACELINE_OK);
  expect_failure(paceline_free_sequence(context, sequence), PACELINE_INVALID, {"sequence"});
  expect_failure(paceline_prefill(context, forked, nullptr, 3, 0, nullptr, 0, nullptr),
                 PACELINE_INVALID, {"ids"});
  expect_failure(paceline_prefill(context, forked, ids.data(), 0, 0, nullptr, 0, logits.data()),
                 PACELINE_INVALID, {"ids"});
  expect_failure(paceline_decode_batch(nullptr, nullptr, 0, nullptr), PACELINE_INVALID,
                 {"context"});
  paceline_free_context(context);
  paceline_free_context(nullptr);
}

// Training in C has the points and the files of training in C++.
class CTraining : public testing::Test {
 protected:
  CTraining() {
    std::ofstream(data_) << "{\"text\": \"Once upon a time\"}\n{\"text\": \"there was a hen\"}\n";
    paceline_load_options_init(&model_);
    model_.model = path_.c_str();
    model_.num_threads = 1;
    paceline_train_options_init(&options_);
    options_.model = &model_;
    options_.output = output_.c_str();
    options_.data = data_.c_str();
    options_.validation_fraction = 0;
    options_.rank = 2;
    options_.num_steps = 3;
    options_.batch_size = 1;
    options_.learning_rate = 1e-3;
    options_.steps_per_report = 1;
  }

  const TestDirectory directory_;
  const std::string path_ = source_path("models/paceline-draft-1m");
  const std::string data_ = directory_.path() / "train.jsonl";
  const std::string output_ = directory_.path() / "run";
  paceline_load_options model_;
  paceline_train_options options_;
};

TEST_F(CTraining, HasThePointsOfCpp) {
  paceline_training* training = nullptr;
  ASSERT_EQ(paceline_open_training(&options_, &training), PACELINE_OK) << paceline_last_error();
  const paceline_training_plan* plan = nullptr;
  ASSERT_EQ(paceline_get_training_plan(training, &plan), PACELINE_OK);
  EXPECT_EQ(plan->num_steps, 3);
  EXPECT_EQ(plan->num_examples, 2);
  EXPECT_STREQ(plan->data_format, "texts");
  paceline_free_training_plan(plan);
  std::vector<double> losses;
  const auto keep = [](const paceline_training_point* point, void* user) {
    if (!std::isnan(point->loss)) static_cast<std::vector<double>*>(user)->push_back(point->loss);
    return 0;
  };
  paceline_training_outcome outcome;
  ASSERT_EQ(paceline_run_training(training, keep, &losses, nullptr, &outcome), PACELINE_OK)
      << paceline_last_error();
  EXPECT_EQ(outcome.end, PACELINE_TRAINING_FINISHED);
  expect_failure(paceline_run_training(training, keep, &losses, nullptr, &outcome),
                 PACELINE_INVALID, {"taken already"});
  paceline_free_training(training);

  std::vector<double> expected;
  Training::open({.model = {.model = path_, .num_threads = 1},
                  .output = output_ + "2",
                  .data = data_,
                  .validation_fraction = 0.0,
                  .rank = 2,
                  .num_steps = 3,
                  .batch_size = 1,
                  .learning_rate = 1e-3,
                  .steps_per_report = 1})
      .run([&](const TrainingPoint& point) {
        if (point.loss) expected.push_back(*point.loss);
      });
  EXPECT_EQ(losses, expected);
}

TEST_F(CTraining, StopsWhenTheCallerSaysSo) {
  paceline_training* training = nullptr;
  ASSERT_EQ(paceline_open_training(&options_, &training), PACELINE_OK) << paceline_last_error();
  paceline_training_outcome outcome;
  const auto stop = [](const paceline_training_point*, void*) { return 1; };
  ASSERT_EQ(paceline_run_training(training, stop, nullptr, nullptr, &outcome), PACELINE_OK)
      << paceline_last_error();
  EXPECT_EQ(outcome.end, PACELINE_TRAINING_STOPPED);
  EXPECT_LT(outcome.num_steps, 3);
  paceline_free_training(training);

  // A cancellation that came before stops it at once.
  options_.resume = 1;
  paceline_cancellation* cancellation = paceline_new_cancellation();
  paceline_cancel(cancellation);
  ASSERT_EQ(paceline_open_training(&options_, &training), PACELINE_OK) << paceline_last_error();
  ASSERT_EQ(paceline_run_training(training, nullptr, nullptr, cancellation, &outcome), PACELINE_OK);
  EXPECT_EQ(outcome.end, PACELINE_TRAINING_STOPPED);
  paceline_free_training(training);
  paceline_free_cancellation(cancellation);
}

TEST_F(CTraining, WrongOptionsAreNamed) {
  paceline_training* training = nullptr;
  const auto refuses = [&](const std::vector<std::string>& parts) {
    expect_failure(paceline_open_training(&options_, &training), PACELINE_INVALID, parts);
    EXPECT_EQ(training, nullptr);
  };
  const paceline_train_options usual = options_;
  options_.schedule = "parabola";
  refuses({"options.schedule", "parabola", "cosine"});
  options_ = usual;
  options_.fine_tune_type = "some";
  refuses({"options.fine_tune_type", "some", "lora, full"});
  options_ = usual;
  options_.num_target_modules = 1;
  refuses({"options.target_modules"});
  options_ = usual;
  options_.rank = 0;
  refuses({"--lora-rank", "found 0"});
  options_ = usual;
  options_.data = nullptr;
  refuses({"options.data"});
  options_ = usual;
  options_.size = 0;
  refuses({"options.size"});
  expect_failure(paceline_run_training(nullptr, nullptr, nullptr, nullptr, nullptr),
                 PACELINE_INVALID, {"outcome"});
  expect_failure(paceline_open_training(nullptr, &training), PACELINE_INVALID, {"options"});
  paceline_free_training(nullptr);
  paceline_free_training_plan(nullptr);
}

}  // namespace
}  // namespace paceline
