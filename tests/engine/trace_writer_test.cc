// Compares a trace with the results of its requests: every request, row and block of every step.
#include "engine/trace_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "base/json.h"
#include "sampling/token_mask.h"
#include "tests/engine/constraints.h"
#include "tests/engine/engine_fixture.h"
#include "tests/expect_error.h"

namespace paceline::testing {
namespace {

using Ids = std::vector<TokenId>;

class TraceWriterTest : public EngineTest {
 protected:
  void TearDown() override { ::unlink(path_.c_str()); }

  void trace() {
    writer_ = std::make_unique<TraceWriter>(path_, "a \"model\"", engine_->limits(), *cache_);
    engine_->set_observer(writer_.get());
  }
  std::vector<Json> lines() {
    engine_->set_observer(nullptr);
    writer_.reset();
    std::vector<Json> all;
    std::ifstream file(path_);
    for (std::string text; std::getline(file, text);) all.push_back(parse_json(text, "trace"));
    return all;
  }

  const std::string path_ =
      ::testing::TempDir() + "paceline_trace_" + std::to_string(::getpid()) + ".jsonl";
  std::unique_ptr<TraceWriter> writer_;
};

std::string type_of(const Json& line) { return line.find("type")->as_string("type"); }
int64_t integer(const Json& line, std::string_view key) { return line.find(key)->as_int(key); }
double real(const Json& line, std::string_view key) { return line.find(key)->as_double(key); }
const Json::Array& array(const Json& line, std::string_view key) {
  return line.find(key)->as_array(key);
}
std::vector<int64_t> integers(const Json& value) {
  std::vector<int64_t> all;
  for (const Json& one : value.as_array("integers")) all.push_back(one.as_int("integer"));
  return all;
}
std::vector<int64_t> integers(const Json& line, std::string_view key) {
  return integers(*line.find(key));
}

TEST_F(TraceWriterTest, TheFirstLineSaysWhatEngineItIs) {
  engine({.block_size = 4,
          .limits = {.max_model_len = 64, .max_batched_tokens = 9, .max_num_seqs = 7},
          .groups = {{.num_blocks = 40}, {.window = 5, .num_blocks = 30}}});
  trace();
  const auto all = lines();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(type_of(all[0]), "start");
  EXPECT_EQ(all[0].find("model")->as_string("model"), "a \"model\"");
  EXPECT_EQ(integer(all[0], "block_size"), 4);
  EXPECT_EQ(integer(all[0], "max_batched_tokens"), 9);
  EXPECT_EQ(integer(all[0], "max_num_seqs"), 7);
  const auto& groups = array(all[0], "groups");
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(integer(groups[0], "window"), 0);
  EXPECT_EQ(integer(groups[0], "blocks"), 40);
  EXPECT_EQ(integer(groups[1], "window"), 5);
  EXPECT_EQ(integer(groups[1], "blocks"), 30);
}

TEST_F(TraceWriterTest, ARequestIsALineForEachChoiceWithAllThatItAskedFor) {
  engine();
  trace();
  GenerateRequest request = greedy({1, 2, 3}, 4);
  request.n = 2;
  request.sampling = {{.temperature = 0.5f,
                       .top_k = 3,
                       .top_p = 0.25f,
                       .min_p = 0.125f,
                       .repetition_penalty = 1.5f,
                       .frequency_penalty = 0.75f,
                       .presence_penalty = -0.25f,
                       .seed = 90,
                       .order = SamplerOrder::mlx}};
  request.sampling.logit_bias = {{4, 2.5f}, {5, -std::numeric_limits<float>::infinity()}};
  request.allowed_token_ids = {9, 4, 8};
  request.banned_sequences = {{8}, {4, 9}};
  request.stop_token_ids = {8};
  request.stop_strings = {"x\"y", "z"};
  request.min_tokens = 1;
  request.ignore_eos = true;
  request.specials = SpecialTokens::shown;
  request.priority = -3;
  const RequestId id = submit(std::move(request));
  step();
  const auto all = lines();
  for (int64_t choice = 0; choice < 2; ++choice) {
    const Json& line = all[static_cast<size_t>(1 + choice)];
    EXPECT_EQ(type_of(line), "request");
    EXPECT_EQ(integer(line, "id"), id + choice);
    EXPECT_EQ(integer(line, "step"), 0);
    EXPECT_EQ(integers(line, "prompt_ids"), (std::vector<int64_t>{1, 2, 3}));
    EXPECT_EQ(integer(line, "prompt_tokens"), 3);
    EXPECT_EQ(integer(line, "max_tokens"), 4);
    EXPECT_EQ(integer(line, "seed"), 90 + choice);
    EXPECT_EQ(real(line, "temperature"), 0.5);
    EXPECT_EQ(real(line, "top_p"), 0.25);
    EXPECT_EQ(integer(line, "top_k"), 3);
    EXPECT_EQ(real(line, "min_p"), 0.125);
    EXPECT_EQ(real(line, "repetition_penalty"), 1.5);
    EXPECT_EQ(real(line, "frequency_penalty"), 0.75);
    EXPECT_EQ(real(line, "presence_penalty"), -0.25);
    ASSERT_EQ(array(line, "logit_bias").size(), 1u);
    EXPECT_EQ(array(line, "logit_bias")[0].as_array("pair")[0].as_int("id"), 4);
    EXPECT_EQ(array(line, "logit_bias")[0].as_array("pair")[1].as_double("bias"), 2.5);
    EXPECT_EQ(integers(line, "never"), (std::vector<int64_t>{5}));
    EXPECT_EQ(integers(line, "allowed_token_ids"), (std::vector<int64_t>{4, 8, 9}));
    ASSERT_EQ(array(line, "banned").size(), 2u);
    EXPECT_EQ(integers(array(line, "banned")[0]), (std::vector<int64_t>{8}));
    EXPECT_EQ(integers(array(line, "banned")[1]), (std::vector<int64_t>{4, 9}));
    EXPECT_EQ(line.find("sampler_order")->as_string("order"), "mlx");
    EXPECT_EQ(integers(line, "stop_token_ids"), (std::vector<int64_t>{8}));
    ASSERT_EQ(array(line, "stop").size(), 2u);
    EXPECT_EQ(array(line, "stop")[0].as_string("stop"), "x\"y");
    EXPECT_EQ(array(line, "stop")[1].as_string("stop"), "z");
    EXPECT_EQ(integers(line, "eos_token_ids"), (std::vector<int64_t>{kEos}));
    EXPECT_TRUE(line.find("ignore_eos")->as_bool("ignore_eos"));
    EXPECT_EQ(integer(line, "priority"), -3);
    EXPECT_EQ(integer(line, "min_tokens"), 1);
    EXPECT_FALSE(line.find("skip_special_tokens")->as_bool("skip_special_tokens"));
  }
}

TEST_F(TraceWriterTest, WhatIsAsUsualIsLeftOut) {
  engine();
  trace();
  run(greedy({1}, 1));
  GenerateRequest constrained = greedy({1}, 1);
  constrained.constraint = regex_constraint("[a-z]");
  run(constrained);
  const std::vector<Json> all = lines();
  const Json& line = all[1];
  for (const char* key : {"never", "allowed_token_ids", "banned", "sampler_order", "min_tokens",
                          "skip_special_tokens", "is_constrained"}) {
    EXPECT_EQ(line.find(key), nullptr) << key;
  }
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [](const Json& one) { return one.find("is_constrained") != nullptr; }),
            1);
}

TEST_F(TraceWriterTest, CancellationsStandBetweenTheSteps) {
  engine();
  trace();
  const RequestId first = submit(greedy({1}, 9));
  std::stop_source source;
  GenerateRequest request = greedy({2}, 9);
  request.cancelled = source.get_token();
  const RequestId second = submit(std::move(request));
  step();
  step();
  engine_->cancel(first);
  source.request_stop();
  run_all();
  std::map<int64_t, int64_t> cancelled;  // id to step
  for (const Json& line : lines()) {
    if (type_of(line) == "cancel") cancelled[integer(line, "id")] = integer(line, "step");
  }
  EXPECT_EQ(cancelled, (std::map<int64_t, int64_t>{{first, 2}, {second, 2}}));
}

// The entries of one sequence in a trace's steps.
struct Traced {
  int64_t rows = 0;
  int64_t first = 0;  // of the next slice
  std::vector<TokenId> tokens;
  std::string finished;
};

TEST_F(TraceWriterTest, StepsAddUpToWhatTheRequestsGot) {
  engine(
      {.num_blocks = 8, .block_size = 2, .limits = {.max_model_len = 64, .max_batched_tokens = 6}});
  run(greedy({1, 2, 3, 4, 5}, 2));  // untraced; leaves blocks in the cache
  answers_.clear();
  const int64_t first_step = engine_->counters().steps;
  const int64_t rows_before = runner_.num_rows;
  trace();
  const RequestId hit = submit(greedy({1, 2, 3, 4, 9}, 6));
  const RequestId stops = submit(greedy({27, 28}, 9));
  const RequestId late = submit(greedy({11, 12, 13}, 6));
  run_all();

  std::map<int64_t, Traced> traced;
  int64_t next_step = first_step, num_preempted = 0, rows = 0;
  double last_at = 0;
  std::set<int64_t> running;
  for (const Json& line : lines()) {
    if (type_of(line) != "step") continue;
    EXPECT_EQ(integer(line, "step"), next_step++);
    EXPECT_GE(real(line, "at_us"), last_at);
    last_at = real(line, "at_us");
    EXPECT_LE(last_at, 600e6);
    EXPECT_GE(real(line, "total_us") + 2, real(line, "plan_us") + real(line, "forward_us"));
    for (const Json& one : array(line, "admitted")) {
      Traced& sequence = traced[integers(one)[0]];
      sequence.first = integers(one)[1];
      running.insert(integers(one)[0]);
      if (integers(one)[0] == hit && sequence.rows == 0) {
        EXPECT_EQ(integers(one)[1], 4);
      }
    }
    for (const int64_t id : integers(line, "preempted")) {
      ++num_preempted;
      running.erase(id);
    }
    int64_t rows_of_step = 0;
    for (const Json& slice : array(line, "slices")) {
      const auto parts = integers(slice);
      EXPECT_EQ(parts[1], traced[parts[0]].first) << "slices follow one another";
      traced[parts[0]].first += parts[2];
      traced[parts[0]].rows += parts[2];
      rows_of_step += parts[2];
    }
    EXPECT_EQ(integer(line, "num_rows"), rows_of_step);
    rows += rows_of_step;
    for (const Json& token : array(line, "tokens")) {
      traced[integers(token)[0]].tokens.push_back(static_cast<TokenId>(integers(token)[1]));
    }
    for (const Json& one : array(line, "finished")) {
      const auto& pair = one.as_array("finished");
      traced[pair[0].as_int("id")].finished = pair[1].as_string("reason");
      running.erase(pair[0].as_int("id"));
    }
    // One group, nothing shared: running sequences hold all blocks that aren't free.
    int64_t held = 0;
    std::set<int64_t> holders;
    for (const Json& one : array(line, "blocks")) {
      held += integers(one)[1];
      holders.insert(integers(one)[0]);
    }
    EXPECT_EQ(holders, running);
    EXPECT_EQ(integers(line, "free_blocks")[0] + held, 8);
    EXPECT_GE(integers(line, "free_blocks")[0], integers(line, "cached_blocks")[0]);
    EXPECT_EQ(integer(line, "num_waiting"),
              3 - static_cast<int64_t>(running.size()) -
                  std::count_if(traced.begin(), traced.end(),
                                [](auto& x) { return !x.second.finished.empty(); }));
  }
  EXPECT_EQ(next_step, engine_->counters().steps);
  EXPECT_EQ(rows, runner_.num_rows - rows_before);
  EXPECT_EQ(num_preempted, engine_->counters().preemptions);
  EXPECT_GT(num_preempted, 0) << "the pool is too small for all";
  EXPECT_EQ(traced[hit].tokens, answer(hit).tokens);
  EXPECT_EQ(traced[hit].finished, "length");
  EXPECT_EQ(traced[late].tokens, answer(late).tokens);
  EXPECT_EQ(traced[stops].tokens, (Ids{29, 30, 31})) << "with the end that was drawn";
  EXPECT_EQ(traced[stops].finished, "stop");
}

TEST_F(TraceWriterTest, ABadPathIsNamed) {
  engine();
  expect_error(ErrorCode::invalid, {"--trace /nonexistent/trace", "No such file"},
               [&] { TraceWriter("/nonexistent/trace", "model", engine_->limits(), *cache_); });
}

TEST_F(TraceWriterTest, ADiskThatIsFullFromTheStartIsNamed) {
  engine();
  expect_error(ErrorCode::exhausted, {"--trace /dev/full", "No space left"},
               [&] { TraceWriter("/dev/full", "model", engine_->limits(), *cache_); });
}

TEST_F(TraceWriterTest, AFinishedTraceHasEveryStep) {
  engine();
  trace();
  run(greedy({1, 2}, 3));
  engine_->set_observer(nullptr);
  EXPECT_NO_THROW(writer_->finish());
  EXPECT_EQ(std::ssize(lines()), 2 + engine_->counters().steps) << "the start and the request too";
}

// No file grows beyond the limit while this object lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  sighandler_t handler_ = nullptr;
};

TEST_F(TraceWriterTest, ADiskThatFillsLaterEndsTheTraceAlone) {
  engine();
  trace();
  {
    const FileSizeLimit limit(1024);
    for (int32_t i = 0; i < 20; ++i) {
      EXPECT_EQ(run(greedy({i % 20, 1}, 5)).tokens, (Ids{2, 3, 4, 5, 6}));
    }
  }
  engine_->set_observer(nullptr);
  expect_error(ErrorCode::exhausted, {"--trace " + path_, "File too large", "ends early"},
               [&] { writer_->finish(); });
}

}  // namespace
}  // namespace paceline::testing
