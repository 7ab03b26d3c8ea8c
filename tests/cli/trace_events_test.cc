#include "cli/trace_totals.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/json_writer.h"
#include "tests/cli/small_trace.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

std::vector<std::pair<SpanKind, int64_t>> kinds_and_tokens(const Lane& lane) {
  std::vector<std::pair<SpanKind, int64_t>> spans;
  for (const LaneSpan& span : lane.spans) spans.emplace_back(span.kind, span.tokens);
  return spans;
}

TEST(Timeline, FollowsEachSequence) {
  const Timeline timeline = make_timeline(read_lines(small_trace_lines()));
  EXPECT_EQ(timeline.duration_us, 1200);
  ASSERT_THAT(timeline.lanes, SizeIs(3));

  const Lane& first = timeline.lanes[0];
  EXPECT_THAT(kinds_and_tokens(first),
              ElementsAre(Pair(SpanKind::prefill, 10), Pair(SpanKind::decode, 2)));
  EXPECT_EQ(first.spans[1].time.begin_us, 600);  // two steps in one span
  EXPECT_EQ(first.spans[1].time.end_us, 900);
  EXPECT_EQ(first.first_token_us, 500);
  EXPECT_EQ(first.end_us, 900);
  EXPECT_EQ(first.finish_reason, "stop");
  EXPECT_EQ(first.output_tokens, 3);

  const Lane& second = timeline.lanes[1];
  EXPECT_THAT(kinds_and_tokens(second),
              ElementsAre(Pair(SpanKind::prefill, 6), Pair(SpanKind::decode, 1),
                          Pair(SpanKind::recompute, 4), Pair(SpanKind::decode, 1)));
  EXPECT_THAT(second.preemptions_us, ElementsAre(700));
  EXPECT_EQ(second.cached_tokens, 4);
  EXPECT_EQ(second.finish_reason, "length");

  const Lane& third = timeline.lanes[2];
  EXPECT_EQ(third.arrival_us, 700);
  EXPECT_EQ(third.cached_tokens, 8);
  EXPECT_THAT(kinds_and_tokens(third), ElementsAre(Pair(SpanKind::prefill, 4)));
  EXPECT_EQ(third.end_us, 1000);
  EXPECT_EQ(third.finish_reason, "cancelled");
}

// The first trace, whose sequence 1 drafts three tokens in step 1 and keeps two.
std::vector<std::string> drafting_trace_lines() {
  std::vector<std::string> lines = small_trace_lines();
  for (std::string& line : lines) {
    const auto replace = [&line](std::string_view from, std::string_view to) {
      const size_t at = line.find(from);
      if (at != std::string::npos) line.replace(at, from.size(), to);
    };
    if (line.find(R"("step":1,)") != std::string::npos) {
      replace(R"("slices":[[1,10,1],)", R"("slices":[[1,10,4],)");
      replace(R"("blocks")", R"("drafts":[[1,3,2]],"blocks")");
      replace(R"("tokens":[[1,13],)", R"("tokens":[[1,13],[1,23],[1,33],)");
      replace(R"("num_rows":2)", R"("num_rows":5)");
    }
    replace(R"("slices":[[1,11,1],)", R"("slices":[[1,13,1],)");
  }
  return lines;
}

TEST(Timeline, DraftsAreRowsOfADecode) {
  const Trace trace = read_lines(drafting_trace_lines());
  const Timeline timeline = make_timeline(trace);
  const Lane& lane = timeline.lanes[0];
  EXPECT_THAT(kinds_and_tokens(lane),
              ElementsAre(Pair(SpanKind::prefill, 10), Pair(SpanKind::decode, 5)));
  EXPECT_EQ(lane.spans[1].drafted, 3);
  EXPECT_EQ(lane.spans[1].accepted, 2);
  EXPECT_EQ(lane.output_tokens, 5);
  EXPECT_EQ(timeline.steps[1].accepted_rows, 2);
  EXPECT_EQ(timeline.steps[1].rejected_rows, 1);
  const TraceTotals totals = add_up(trace, timeline);
  EXPECT_EQ(totals.drafted_tokens, 3);
  EXPECT_EQ(totals.accepted_tokens, 2);
  EXPECT_THAT(totals_text(totals), testing::EndsWith(draft_figures(totals.drafts())));
  EXPECT_THAT(totals_json(totals), HasSubstr(R"("drafted_tokens":3,"accepted_tokens":2,)"));
}

TEST(Timeline, CountsTheRowsOfEachStep) {
  const Timeline timeline = make_timeline(read_lines(small_trace_lines()));
  std::vector<std::pair<int64_t, int64_t>> rows;
  for (const StepTime& step : timeline.steps)
    rows.emplace_back(step.prefill_rows, step.decode_rows);
  EXPECT_THAT(rows, ElementsAre(Pair(16, 0), Pair(0, 2), Pair(4, 1), Pair(4, 0), Pair(0, 1)));
}

TEST(Timeline, AFurtherChoiceDecodesFromItsFirstSliceOn) {
  std::vector<std::string> lines = small_trace_lines();
  lines.resize(5);
  lines.insert(lines.begin() + 3, request_line(9, 0, 10));  // on the prompt of the first
  const auto insert = [&](size_t index, const std::string& behind, const std::string& text) {
    lines[index].insert(lines[index].find(behind) + behind.size(), text);
  };
  insert(4, R"("tokens":[)", "[9,3],");
  insert(5, R"("slices":[)", "[9,10,1],");
  const Timeline timeline = make_timeline(read_lines(lines));
  EXPECT_THAT(kinds_and_tokens(timeline.lanes[2]), ElementsAre(Pair(SpanKind::decode, 1)));
  EXPECT_EQ(timeline.steps[1].decode_rows, 3);
}

TEST(Timeline, ASequenceThatNeverEndsGoesOn) {
  std::vector<std::string> lines = small_trace_lines();
  lines.resize(5);
  lines.push_back(R"({"type":"cancel","id":2,"step":9})");
  const Timeline timeline = make_timeline(read_lines(lines));
  EXPECT_EQ(timeline.lanes[0].end_us, std::nullopt);
  // A cancellation ends a sequence even without a later step.
  EXPECT_EQ(timeline.lanes[1].end_us, timeline.duration_us);
  EXPECT_EQ(timeline.lanes[1].finish_reason, "cancelled");
}

TEST(TraceTotals, AddUp) {
  const Trace trace = read_lines(small_trace_lines());
  const TraceTotals totals = add_up(trace, make_timeline(trace));
  EXPECT_EQ(totals_json(totals),
            R"({"model":"tiny","requests":3,"finished":{"stop":1,"length":1,"cancelled":1},)"
            R"("steps":5,"seconds":0.0012,"forward_seconds":9e-04,"prompt_tokens":28,)"
            R"("cached_tokens":12,"computed_tokens":28,"recomputed_tokens":4,"output_tokens":8,)"
            R"("drafted_tokens":0,"accepted_tokens":0,"tokens_per_step":1,)"
            R"("tokens_per_second":6666.666666666667,"preemptions":1,"max_running":2,)"
            R"("max_blocks_held":[5],"median_first_token_ms":0.5,"mean_overhead_us":20,)"
            R"("max_plan_us":7})");
  EXPECT_THAT(totals_text(totals), HasSubstr("3 requests · 8 tokens out of 28 in · 5 steps"));
  EXPECT_THAT(totals_text(totals), HasSubstr("1 preemption · 12 tokens from the prefix cache"));
}

TEST(TraceTotals, OfNothingAreZero) {
  const Trace trace = read_lines({small_trace_lines()[0]});
  const Json json = parse_json(totals_json(add_up(trace, make_timeline(trace))), "totals");
  EXPECT_EQ(json.find("tokens_per_second")->as_double(""), 0);
  EXPECT_TRUE(json.find("median_first_token_ms")->is_null());
}

Json events_of(const Trace& trace) {
  const Timeline timeline = make_timeline(trace);
  return parse_json(trace_events(trace, timeline, add_up(trace, timeline)), "events");
}

// "NAME PHASE PROCESS/TRACK at BEGIN for DURATION ARGUMENTS" of every event.
std::vector<std::string> lines_of(const Json& events) {
  std::vector<std::string> lines;
  for (const Json& event : events.find("traceEvents")->as_array("")) {
    std::string line = fmt::format("{} {} {}/{} at {}", event.find("name")->as_string(""),
                                   event.find("ph")->as_string(""), event.find("pid")->as_int(""),
                                   event.find("tid")->as_int(""), event.find("ts")->as_int(""));
    if (const Json* dur = event.find("dur")) line += fmt::format(" for {}", dur->as_int(""));
    lines.push_back(line + " " + to_json(*event.find("args")));
  }
  return lines;
}

TEST(TraceEvents, ShowWhatHappened) {
  const Json events = events_of(read_lines(drafting_trace_lines()));
  EXPECT_EQ(events.find("otherData")->find("drafted_tokens")->as_int(""), 3);
  const std::vector<std::string> lines = lines_of(events);
  for (
      const char* expected :
      {R"(process_name M 2/0 at 0 {"name":"sequences"})",
       R"(step 1 X 1/0 at 600 for 100 {"rows":5,"sequences":2,"waiting":0,"plan_us":2,"forward_us":90})",
       R"(rows C 1/0 at 600 {"prefill":0,"decode":2,"accepted drafts":2,"rejected drafts":1})",
       R"(blocks of group 0 C 1/0 at 700 {"held":4,"cached":1,"free":3})",
       R"(thread_name M 2/1 at 0 {"name":"sequence 1"})",
       R"(stop X 2/1 at 0 for 900 {"prompt_tokens":10,"cached_tokens":0,"output_tokens":5,"drafted_tokens":3,"accepted_tokens":2,"first_token_us":500})",
       R"(prefill X 2/1 at 0 for 500 {"rows":10,"drafted":0,"accepted":0})",
       R"(decode X 2/1 at 600 for 300 {"rows":5,"drafted":3,"accepted":2})",
       R"(computed again X 2/2 at 1000 for 100 {"rows":4,"drafted":0,"accepted":0})",
       R"(preempted i 2/2 at 700 {})", R"(from the prefix cache i 2/3 at 700 {"tokens":8})",
       R"(cancelled X 2/3 at 700 for 300 {"prompt_tokens":12,"cached_tokens":8,"output_tokens":1,"drafted_tokens":0,"accepted_tokens":0,"first_token_us":200})"}) {
    EXPECT_THAT(lines, testing::Contains(expected));
  }
  EXPECT_THAT(lines, SizeIs(2 + 5 * 3 + 3 + 3 + 7 + 2 + 1));
}

TEST(TraceEvents, OfAnEmptyTraceAreJsonToo) {
  EXPECT_THAT(lines_of(events_of(read_lines({small_trace_lines()[0]}))), SizeIs(2));
}

}  // namespace
}  // namespace paceline
