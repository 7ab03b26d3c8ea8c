// Monitoring of the server: histograms, the history of steps, workers, the page's files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <future>

#include "base/line_writer.h"
#include "server/api_call.h"
#include "server/histogram.h"
#include "server/page_files.h"
#include "server/step_history.h"
#include "server/worker_pool.h"

namespace paceline {
namespace {

TEST(Histogram, CountsBelowItsBounds) {
  const std::vector<double> bounds = {1, 2, 4};
  Histogram histogram(bounds);
  EXPECT_FALSE(histogram.quantile(0.5).has_value());
  for (const double value : {0.5, 1.0, 1.5, 3.0, 9.0}) histogram.observe(value);
  EXPECT_EQ(std::vector<int64_t>(histogram.counts().begin(), histogram.counts().end()),
            (std::vector<int64_t>{2, 1, 1, 1}));
  EXPECT_EQ(histogram.count(), 5);
  EXPECT_DOUBLE_EQ(histogram.sum(), 15);
  EXPECT_DOUBLE_EQ(*histogram.quantile(0.2), 0.5);
  EXPECT_DOUBLE_EQ(*histogram.quantile(0.4), 1);
  EXPECT_DOUBLE_EQ(*histogram.quantile(0.8), 4);
  EXPECT_DOUBLE_EQ(*histogram.quantile(1), 4) << "nothing is known of what lies above";
}

TEST(StepHistory, KeepsTheLastInOrder) {
  StepHistory history;
  StepRecord record;
  for (int64_t step = 0; step < 200; ++step) {
    record.clear();
    record.step = step;
    record.slices.push_back({.id = step, .first = 3, .count = 2});
    record.tokens.push_back({.id = step, .token = 4000});
    history.on_step(record);
  }
  const auto steps = history.last_steps();
  ASSERT_EQ(steps.size(), 64u);
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].step, static_cast<int64_t>(136 + i));
    EXPECT_EQ(steps[i].slices[0], (std::pair<int64_t, int64_t>(steps[i].step, 2)));
  }
  EXPECT_DOUBLE_EQ(history.tokens_per_second(), 100) << "two hundred in the last two seconds";
}

TEST(StepHistory, SaysTheFirstFailureOfADrafterOnce) {
  StepHistory history;
  std::vector<std::string> said;
  history.on_first_draft_failure([&](const std::string& failure) { said.push_back(failure); });
  StepRecord record;
  history.on_step(record);
  EXPECT_TRUE(said.empty());
  for (const char* failure : {"drafter: one", "drafter: two"}) {
    record.clear();
    record.drafts.push_back({.id = 4, .drafted = 3, .accepted = 2});
    record.draft_failure = failure;
    history.on_step(record);
  }
  EXPECT_EQ(said, std::vector<std::string>{"drafter: one"});
  EXPECT_EQ(history.last_steps().back().drafts, record.drafts);
}

TEST(Warning, IsALineInTheLogsFormat) {
  int ends[2] = {};
  ASSERT_EQ(pipe(ends), 0);
  {
    LineWriter log(ends[1]);
    write_warning(log, "drafter: \"x\"", false);
    write_warning(log, "drafter: \"x\"", true);
  }
  close(ends[1]);
  char lines[512] = {};
  ASSERT_GT(read(ends[0], lines, sizeof lines - 1), 0);
  close(ends[0]);
  const std::string text(lines);
  EXPECT_THAT(text, ::testing::StartsWith("warning: drafter: \"x\"\n{\"time\":\""));
  EXPECT_THAT(text, ::testing::EndsWith(R"(","warning":"drafter: \"x\""})"
                                        "\n"));
}

TEST(WorkerPool, RunsWhatItTakesAndRefusesMore) {
  std::promise<void> begun, go_on;
  std::atomic<int> num_done = 0;
  WorkerPool pool(1, 2);
  ASSERT_TRUE(pool.try_run([&] {
    begun.set_value();
    go_on.get_future().wait();
  }));
  begun.get_future().wait();
  EXPECT_TRUE(pool.try_run([&] { ++num_done; }));
  std::promise<void> all;
  EXPECT_TRUE(pool.try_run([&] {
    ++num_done;
    all.set_value();
  }));
  EXPECT_FALSE(pool.try_run([&] { ++num_done; }));
  go_on.set_value();
  all.get_future().wait();
  EXPECT_EQ(num_done, 2);
}

TEST(WorkerPool, WithoutThreadsRunsAJobAtOnce) {
  WorkerPool pool(0, 1);
  int num_done = 0;
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(pool.try_run([&] { ++num_done; }));
    EXPECT_EQ(num_done, i);
  }
}

TEST(PageFiles, HaveAnIndexThatNamesWhatIsThere) {
  const PageFile* index = find_page_file("/page/index.html");
  ASSERT_NE(index, nullptr);
  EXPECT_TRUE(index->content.starts_with("<!doctype html>"));
  EXPECT_TRUE(index->content.ends_with("</html>\n"));
  for (const PageFile& file : page_files()) {
    EXPECT_FALSE(file.content.empty()) << file.path;
    EXPECT_EQ(find_page_file(file.path), &file);
  }
  for (const char* path : {"/page/main.js", "/page/style.css"}) {
    EXPECT_NE(index->content.find(path), std::string_view::npos);
    EXPECT_NE(find_page_file(path), nullptr);
  }
  EXPECT_EQ(find_page_file("/page/main"), nullptr);
}

TEST(PageFiles, AreServedWithAPolicyThatLetsNoTextBecomeScript) {
  const HttpResponse response = page_response(*find_page_file("/"));
  std::string policy;
  for (const auto& [name, value] : response.headers) {
    if (name == "Content-Security-Policy") policy = value;
  }
  for (const char* rule : {"default-src 'none'", "script-src 'self'", "connect-src 'self'",
                           "require-trusted-types-for 'script'", "frame-ancestors 'none'"}) {
    EXPECT_NE(policy.find(rule), std::string::npos) << rule;
  }
  EXPECT_EQ(policy.find("unsafe"), std::string::npos) << policy;
}

}  // namespace
}  // namespace paceline
