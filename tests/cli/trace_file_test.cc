#include "cli/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/cli/small_trace.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr size_t kRequest = 1;  // indices of lines
constexpr size_t kStep = 3;
constexpr size_t kCancel = 7;

// The small trace with `from` replaced in one of its lines.
std::vector<std::string> changed(size_t index, const std::string& from, const std::string& to) {
  std::vector<std::string> lines = small_trace_lines();
  const size_t at = lines.at(index).find(from);
  EXPECT_NE(at, std::string::npos) << from;
  lines[index].replace(at, from.size(), to);
  return lines;
}

TEST(TraceFile, ReadsStartAndRequests) {
  const Trace trace = read_lines(small_trace_lines());
  EXPECT_EQ(trace.start.model, "tiny");
  EXPECT_EQ(trace.start.block_size, 4);
  ASSERT_THAT(trace.start.groups, SizeIs(1));
  EXPECT_EQ(trace.start.groups[0].window, 0);
  EXPECT_EQ(trace.start.groups[0].blocks, 8);
  EXPECT_EQ(trace.start.max_num_seqs, 4);
  EXPECT_EQ(trace.start.max_batched_tokens, 16);

  ASSERT_THAT(trace.requests, SizeIs(3));
  const TraceRequest& request = trace.requests[1];
  EXPECT_EQ(request.id, 2);
  EXPECT_EQ(request.step, 0);
  EXPECT_THAT(request.prompt_ids, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(request.prompt_tokens, 6);
  EXPECT_EQ(request.max_tokens, 4);
  EXPECT_EQ(request.sampling.temperature, 0.5f);
  EXPECT_EQ(request.sampling.top_p, 0.9f);
  EXPECT_EQ(request.sampling.top_k, 5);
  EXPECT_EQ(request.sampling.min_p, 0.1f);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.1f);
  EXPECT_EQ(request.sampling.frequency_penalty, -1);
  EXPECT_EQ(request.sampling.presence_penalty, 2);
  ASSERT_THAT(request.logit_bias, SizeIs(1));
  EXPECT_EQ(request.logit_bias[0].id, 3);
  EXPECT_EQ(request.logit_bias[0].bias, -1.5f);
  EXPECT_EQ(request.sampling.seed, UINT64_MAX);
  EXPECT_THAT(request.stop_token_ids, ElementsAre(4));
  EXPECT_THAT(request.stop, ElementsAre("a", "b"));
  EXPECT_THAT(request.eos_token_ids, ElementsAre(2, 9));
  EXPECT_TRUE(request.ignore_eos);
  EXPECT_EQ(request.priority, -1);
}

TEST(TraceFile, ReadsStepsAndCancellations) {
  const Trace trace = read_lines(small_trace_lines());
  ASSERT_THAT(trace.steps, SizeIs(5));
  const StepRecord& step = trace.steps[2];
  EXPECT_EQ(step.step, 2);
  EXPECT_EQ(step.at_us, 1700);
  EXPECT_EQ(step.plan_us, 7);
  EXPECT_EQ(step.forward_us, 180);
  EXPECT_EQ(step.total_us, 200);
  EXPECT_EQ(step.num_rows, 5);
  EXPECT_EQ(step.num_waiting, 1);
  EXPECT_THAT(step.free_blocks, ElementsAre(4));
  EXPECT_THAT(step.cached_blocks, ElementsAre(1));
  ASSERT_THAT(step.admitted, SizeIs(1));
  EXPECT_EQ(step.admitted[0].id, 3);
  EXPECT_EQ(step.admitted[0].cached_tokens, 8);
  EXPECT_THAT(step.preempted, ElementsAre(2));
  ASSERT_THAT(step.slices, SizeIs(2));
  EXPECT_EQ(step.slices[1].id, 3);
  EXPECT_EQ(step.slices[1].first, 8);
  EXPECT_EQ(step.slices[1].count, 4);
  ASSERT_THAT(step.blocks, SizeIs(2));
  EXPECT_EQ(step.blocks[0].count, 3);
  ASSERT_THAT(step.tokens, SizeIs(2));
  EXPECT_EQ(step.tokens[1].token, 16);
  ASSERT_THAT(step.finished, SizeIs(1));
  EXPECT_EQ(step.finished[0].id, 1);
  EXPECT_EQ(step.finished[0].reason, FinishReason::stop);
  ASSERT_THAT(trace.cancels, SizeIs(1));
  EXPECT_EQ(trace.cancels[0].id, 3);
  EXPECT_EQ(trace.cancels[0].step, 3);
}

TEST(TraceFile, AStartAloneIsATrace) {
  const Trace trace = read_lines({small_trace_lines()[0]});
  EXPECT_THAT(trace.requests, IsEmpty());
  EXPECT_THAT(trace.steps, IsEmpty());
}

TEST(TraceFile, NamesTheFileThatIsMissingOrEmpty) {
  expect_error(ErrorCode::not_found, {"nowhere.jsonl", "No such file"},
               [] { read_trace("nowhere.jsonl"); });
  expect_error(ErrorCode::corrupt, {"trace.jsonl: empty"}, [] { read_lines({}); });
}

struct Malformed {
  size_t line;
  std::string from;
  std::string to;
  std::vector<std::string> message;
};

TEST(TraceFile, RefusesMalformedLinesByLineAndField) {
  const Malformed cases[] = {
      {kStep, "{", "", {"line 4: "}},
      {kStep, "]}", "]", {"line 4: "}},
      {kCancel, R"({"type":"cancel","id":3,"step":3})", "[1]", {"line 8", "an object"}},
      {kCancel, R"({"type":"cancel","id":3,"step":3})", "", {"line 8: "}},
      {kCancel, R"("type":"cancel",)", "", {"line 8: type: missing"}},
      {kCancel, "cancel", "cancelled", {"line 8: type: found \"cancelled\""}},
      {kCancel, R"("id":3)", R"("id":3,"why":"x")", {"line 8: unknown field why"}},
      {kCancel, R"("id":3)", R"("id":"3")", {"line 8: id: found \"3\", expected an integer"}},
      {0, R"("block_size":4,)", "", {"line 1: block_size: missing"}},
      {0, R"("window":0,)", "", {"line 1: groups[0].window: missing"}},
      {0,
       R"("blocks":8)",
       R"("blocks":0)",
       {"line 1: groups[0].blocks: found 0, expected an integer from 1 to"}},
      {0, R"("blocks":8)", R"("blocks":8,"x":1)", {"line 1: groups[0]: unknown field x"}},
      {kRequest, R"("seed":18446744073709551615)", R"("seed":-1)", {"line 2: seed: "}},
      {kRequest,
       R"("top_p":0.9)",
       R"("top_p":null)",
       {"line 2: top_p: found null, expected a number"}},
      {kRequest,
       "[3,-1.5]",
       "[3]",
       {"line 2: logit_bias[0]: found an array of 1 values, expected 2"}},
      {kRequest,
       "[3,-1.5]",
       "[-3,1]",
       {"line 2: logit_bias[0][0]: found -3, expected an integer from 0"}},
      {kRequest,
       "[2,9]",
       "[2147483648]",
       {"line 2: eos_token_ids[0]: found 2147483648", "from 0 to 2147483647"}},
      {kRequest, R"(["a","b"])", R"(["a",7])", {"line 2: stop[1]: found 7, expected a string"}},
      {kRequest, R"("ignore_eos":true)", R"("ignore_eos":1)", {"line 2: ignore_eos: "}},
      {kStep,
       R"("at_us":1000)",
       R"("at_us":-1)",
       {"line 4: at_us: found -1, expected an integer from 0"}},
      {kStep, R"("at_us":1000)", R"("at_us":1e18)", {"line 4: at_us: "}},
      {kStep, "[1,0,10]", "[1,0,0]", {"line 4: slices[0][2]: found 0, expected an integer from 1"}},
      {kStep, "[1,0,10]", "[1,0]", {"line 4: slices[0]: found an array of 2 values, expected 3"}},
      {kStep, "[2,12]", R"([2,"x"])", {"line 4: tokens[1][1]: found \"x\", expected an integer"}},
      {kStep,
       R"("finished":[])",
       R"("finished":[[1,2]])",
       {"line 4: finished[0][1]: found 2, expected a string"}},
      {kStep, R"("free_blocks":[3],)", "", {"line 4: free_blocks: missing"}},
  };
  for (const Malformed& one : cases) {
    SCOPED_TRACE(one.to + " for " + one.from);
    expect_error(ErrorCode::invalid, one.message,
                 [&] { read_lines(changed(one.line, one.from, one.to)); });
  }
}

TEST(TraceFile, RefusesLinesThatContradictThoseAbove) {
  const Malformed cases[] = {
      {0, "start", "step", {"line 1: type: found \"step\", expected \"start\""}},
      {kCancel, R"("type":"cancel")", R"("type":"start")", {"line 8: type", "no second start"}},
      {kCancel, R"("id":3)", R"("id":4)", {"line 8: id: found 4, expected the id of a request"}},
      {kRequest + 1, R"("id":2)", R"("id":1)", {"line 3: id: found 1"}},
      {kRequest,
       R"("prompt_tokens":10)",
       R"("prompt_tokens":9)",
       {"line 2: prompt_tokens: found 9"}},
      {kStep + 1, R"("step":1)", R"("step":0)", {"line 5: step: found 0, expected more than 0"}},
      {kStep + 1, R"("at_us":1600)", R"("at_us":999)", {"line 5: at_us: found 999"}},
      {kStep,
       R"("free_blocks":[3])",
       R"("free_blocks":[3,3])",
       {"line 4: free_blocks: found 2, expected 1 numbers"}},
      {kStep,
       R"("cached_blocks":[0])",
       R"("cached_blocks":[])",
       {"line 4: cached_blocks: found 0, expected 1 numbers"}},
      {kStep,
       R"("cached_blocks":[0])",
       R"("cached_blocks":[4])",
       {"line 4: cached_blocks: found 4, expected at most 3"}},
      {kStep,
       R"("free_blocks":[3])",
       R"("free_blocks":[9])",
       {"line 4: free_blocks: found 9, expected at most 8"}},
      {kStep, R"("admitted":[[1,0])", R"("admitted":[[7,0])", {"line 4: admitted: found 7"}},
      {kStep, R"("preempted":[])", R"("preempted":[7])", {"line 4: preempted: found 7"}},
      {kStep, R"("slices":)", R"("drafts":[[7,2,1]],"slices":)", {"line 4: drafts: found 7"}},
      {kStep,
       R"("slices":)",
       R"("drafts":[[1,2,3]],"slices":)",
       {"line 4: drafts: found 3, expected at most 2 accepted tokens"}},
      {kStep, R"("slices":[[1,)", R"("slices":[[7,)", {"line 4: slices: found 7"}},
      {kStep, R"("blocks":[[1,)", R"("blocks":[[7,)", {"line 4: blocks: found 7"}},
      {kStep, R"("tokens":[[1,)", R"("tokens":[[7,)", {"line 4: tokens: found 7"}},
      {kStep, R"("finished":[])", R"("finished":[[7,"stop"]])", {"line 4: finished: found 7"}},
  };
  for (const Malformed& one : cases) {
    SCOPED_TRACE(one.to + " for " + one.from);
    expect_error(ErrorCode::corrupt, one.message,
                 [&] { read_lines(changed(one.line, one.from, one.to)); });
  }
}

}  // namespace
}  // namespace paceline
