#include "cli/trace_svg.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/json.h"
#include "cli/svg_writer.h"
#include "cli/words.h"
#include "tests/cli/small_trace.h"
#include "tests/cli/well_formed.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

std::string draw(const Trace& trace) {
  const Timeline timeline = make_timeline(trace);
  return draw_trace(trace, timeline, add_up(trace, timeline));
}

int count(std::string_view text, std::string_view part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

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

TEST(DrawTrace, DraftsHaveTheirOwnParts) {
  const std::string plain = draw(read_lines(small_trace_lines()));
  const std::string drafting = draw(read_lines(drafting_trace_lines()));
  EXPECT_THAT(plain, Not(HasSubstr("accepted drafts")));
  EXPECT_THAT(drafting, HasSubstr("rejected drafts"));
  EXPECT_EQ(count(drafting, "<rect class=\"accepted\"") - count(plain, "<rect class=\"accepted\""),
            3)
      << "a part of the lane, and two legends";
  EXPECT_THAT(drafting, HasSubstr("drafted 3 tokens, accepted 2 (67%)"));
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

TEST(XmlCheck, KnowsWhatIsWrong) {
  EXPECT_EQ(XmlCheck("<a b=\"c\"><d/>e &amp; f</a>\n").run(), "");
  for (std::string_view wrong : {"<a>", "<a></b>", "<a>&</a>", "<a b=c/>", "<a b=\"<\"/>",
                                 "<a/><b/>", "<a b=\"&x;\"/>", "<a/>text", "<a", "</a>"}) {
    EXPECT_NE(XmlCheck(wrong).run(), "") << wrong;
  }
}

TEST(TraceSvg, ShowsWhatHappened) {
  const std::string svg = draw(read_lines(small_trace_lines()));
  EXPECT_EQ(XmlCheck(svg).run(), "");
  const auto num_bars = [&](const std::string& name) {
    return count(svg, "<rect class=\"" + name + "\"") - 1;  // less that of the legend
  };
  EXPECT_EQ(num_bars("prefill"), 3 + 1);  // another legend's
  EXPECT_EQ(num_bars("decode"), 3 + 1);
  EXPECT_EQ(num_bars("again"), 1);
  EXPECT_EQ(num_bars("cached"), 2 + 1);
  EXPECT_EQ(num_bars("wait"), 3);
  EXPECT_EQ(count(svg, "class=\"cross\""), 2);
  EXPECT_EQ(count(svg, "<circle class=\"end\""), 3);
  for (std::string_view text : {">stop, 3<", ">length, 4<", ">cancelled, 1<", ">10<", ">0.2 ms<",
                                "a pool of 8 blocks of 4 tokens", "held if nothing were shared",
                                "@media (prefers-color-scheme: dark)"}) {
    EXPECT_THAT(svg, HasSubstr(std::string(text)));
  }
}

// The height of an area.
double tallest_of(const std::string& svg, std::string_view css_class) {
  const std::string start = fmt::format("<polygon class=\"{}\" points=\"", css_class);
  const size_t begin = svg.find(start) + start.size();
  EXPECT_GT(begin, start.size());
  const std::string points = svg.substr(begin, svg.find('"', begin) - begin);
  std::vector<double> ys;
  for (const std::string_view point : split_words(points)) {
    ys.push_back(std::stod(std::string(point.substr(point.find(',') + 1))));
  }
  return *std::max_element(ys.begin(), ys.end()) - *std::min_element(ys.begin(), ys.end());
}

TEST(TraceSvg, ThePanelOfALargePoolShowsWhatIsUsed) {
  Trace trace = read_lines(small_trace_lines());
  const double small = tallest_of(draw(trace), "held");
  trace.start.groups[0].blocks += 12'000;
  for (StepRecord& step : trace.steps) step.free_blocks[0] += 12'000;
  const std::string svg = draw(trace);
  EXPECT_THAT(svg, HasSubstr("a pool of 12,008 blocks of 4 tokens, at most 6 in use"));
  EXPECT_THAT(svg, Not(HasSubstr(">12,008<")));
  EXPECT_GT(tallest_of(svg, "held"), small);
}

TEST(TraceSvg, RunsNothing) {
  const std::string svg = draw(read_lines(small_trace_lines()));
  for (std::string_view part : {"<script", "javascript:", "onload", "href", "@import"}) {
    EXPECT_THAT(svg, Not(HasSubstr(std::string(part))));
  }
  EXPECT_EQ(count(svg, "http"), 1);  // the namespace
}

TEST(TraceSvg, EscapesWhatTheFileSays) {
  Trace trace = read_lines(small_trace_lines());
  trace.start.model = "</title><script>alert(1)</script>&\"'\x01\xff";
  const std::string svg = draw(trace);
  EXPECT_EQ(XmlCheck(svg).run(), "");
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(
      svg,
      HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;&#39;\xEF\xBF\xBD\xEF\xBF\xBD"));
}

TEST(TraceSvg, AnEmptyTraceSaysSo) {
  const std::string svg = draw(read_lines({small_trace_lines()[0]}));
  EXPECT_EQ(XmlCheck(svg).run(), "");
  EXPECT_THAT(svg, HasSubstr("no step ran"));
}

// `num_sequences` that decode side by side, each beginning a step after the one before.
Trace long_trace(int64_t num_sequences, int64_t num_steps) {
  Trace trace;
  trace.start = {.model = "long",
                 .block_size = 16,
                 .groups = {{.window = 0, .blocks = 1000}},
                 .max_num_seqs = 1000,
                 .max_batched_tokens = 512};
  for (int64_t i = 0; i < num_steps; ++i) {
    StepRecord step;
    step.step = i;
    step.at_us = i * 1000;
    step.total_us = 990;
    step.free_blocks = {1000 - i % 500};
    step.cached_blocks = {0};
    if (i < num_sequences) {
      TraceRequest request;
      request.id = i;
      request.step = i;
      request.prompt_tokens = 1;
      trace.requests.push_back(request);
    }
    for (int64_t id = 0; id < std::min(i + 1, num_sequences); ++id) {
      step.slices.push_back({.id = id, .first = i - id, .count = 1});
      step.tokens.push_back({.id = id, .token = 1});
    }
    trace.steps.push_back(std::move(step));
  }
  return trace;
}

TEST(TraceSvg, StaysSmallHoweverLongTheTrace) {
  const std::string svg = draw(long_trace(400, 3000));
  EXPECT_EQ(XmlCheck(svg).run(), "");
  EXPECT_LT(svg.size(), 500'000u);
  EXPECT_EQ(count(svg, "<rect class=\"decode\""), 400 + 2);  // one bar each, two in the legends
  const size_t at = svg.find("height=\"") + 8;
  EXPECT_LT(std::stoi(svg.substr(at)), 1500);
  EXPECT_LT(std::stoi(draw(long_trace(2000, 2001)).substr(at)), 1500);
}

TEST(SvgWriter, NumbersAreShort) {
  EXPECT_EQ(svg_number(0), "0");
  EXPECT_EQ(svg_number(-0.001), "0");
  EXPECT_EQ(svg_number(100), "100");
  EXPECT_EQ(svg_number(1.5), "1.5");
  EXPECT_EQ(svg_number(-2.346), "-2.35");
}

TEST(SvgWriter, ClosesWhatIsOpen) {
  SvgWriter svg(10, 20, "");
  svg.open_group("a");
  svg.open_group("b");
  svg.text("c", {1, 2}, "x < y");
  const std::string text = svg.finish();
  EXPECT_EQ(XmlCheck(text).run(), "");
  EXPECT_THAT(text, HasSubstr("x &lt; y"));
}

}  // namespace
}  // namespace paceline
