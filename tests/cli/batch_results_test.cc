#include "cli/batch_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "cli/batch_line.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

class BatchResultsTest : public testing::Test {
 protected:
  BatchResultsTest() { std::filesystem::remove(path_); }
  ~BatchResultsTest() override { std::filesystem::remove(path_); }

  void write(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }
  std::string content() {
    std::ostringstream text;
    text << std::ifstream(path_, std::ios::binary).rdbuf();
    return text.str();
  }
  FinishedRequests finished() {
    BatchResults results(path_);
    return read_finished_requests(results.descriptor(), path_);
  }

  std::string path_ = testing::TempDir() + "batch_results_test." + std::to_string(getpid());
};

std::string answer(const std::string& id) {
  return batch_response_record(id, 200, R"({"text":",\"response\":{"})");
}

std::string wrong_line(int64_t number) {
  BatchLine line{.number = number, .custom_id = "w"};
  set_line_error(line, "invalid_url", "url: x");
  return batch_error_record(line);
}

TEST_F(BatchResultsTest, LinesAreThereAtOnceAndAddedToOthers) {
  for (const char* id : {"a", "b"}) {
    BatchResults results(path_);
    const std::string before = content();
    results.append(answer(id));
    EXPECT_EQ(content().size(), before.size() + answer(id).size());
    results.finish();
  }
  const FinishedRequests found = finished();
  EXPECT_TRUE(found.is_done("a"));
  EXPECT_TRUE(found.is_done("b"));
  EXPECT_FALSE(found.is_done("c"));
}

TEST_F(BatchResultsTest, WritersAndTheSyncingThreadDoNotDisturbEachOther) {
  BatchResults results(path_);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(350);
  int64_t count = 0;
  while (std::chrono::steady_clock::now() < end) {
    results.append(answer(std::to_string(count++)));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  results.finish();
  const std::string text = content();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), count);
}

TEST_F(BatchResultsTest, OneRunAtATime) {
  const BatchResults first(path_);
  expect_error(ErrorCode::invalid, {path_, "another `paceline batch`"},
               [&] { const BatchResults second(path_); });
}

TEST_F(BatchResultsTest, WhatCanNotBeOpenedIsNamed) {
  expect_error(ErrorCode::not_found, {"/nowhere/at/all", "No such file"},
               [] { const BatchResults results("/nowhere/at/all"); });
  const std::string folder = testing::TempDir();
  expect_error(ErrorCode::not_found, {folder}, [&] { const BatchResults results(folder); });
}

TEST_F(BatchResultsTest, AFullDiskIsAnError) {
  BatchResults results("/dev/full");
  EXPECT_FALSE(results.is_file());
  expect_error(ErrorCode::exhausted, {"/dev/full: No space left on device"},
               [&] { results.append("x\n"); });
}

TEST_F(BatchResultsTest, CutDropsTheEnd) {
  write(answer("a") + "{\"id\":\"torn");
  BatchResults results(path_);
  const auto found = read_finished_requests(results.descriptor(), path_);
  results.cut(found.valid_bytes());
  results.append(answer("b"));
  results.finish();
  const std::string text = content();
  EXPECT_EQ(text.size(), 2 * answer("a").size());
  EXPECT_EQ(text.find("torn"), std::string::npos);
}

TEST_F(BatchResultsTest, EveryTornEndIsSeen) {
  const std::string whole = answer("a");
  const std::string next = answer("b");
  for (size_t size = 0; size < next.size(); ++size) {
    write(whole + next.substr(0, size));
    const FinishedRequests found = finished();
    ASSERT_EQ(found.valid_bytes(), static_cast<int64_t>(whole.size())) << size;
    ASSERT_TRUE(found.is_done("a"));
    ASSERT_FALSE(found.is_done("b"));
  }
}

TEST_F(BatchResultsTest, ZerosOfACrashEndWhatIsValid) {
  write(answer("a") + std::string(100, '\0') + "\n" + answer("b"));
  const FinishedRequests found = finished();
  EXPECT_EQ(found.valid_bytes(), static_cast<int64_t>(answer("a").size()));
  EXPECT_FALSE(found.is_done("b"));
}

TEST_F(BatchResultsTest, WrongLinesAreKnownByTheirNumbers) {
  write(wrong_line(3) + answer("a") + wrong_line(70000));
  const FinishedRequests found = finished();
  EXPECT_TRUE(found.is_reported(3));
  EXPECT_TRUE(found.is_reported(70000));
  EXPECT_FALSE(found.is_reported(4));
  EXPECT_FALSE(found.is_done("w"));  // its line may be corrected
}

TEST_F(BatchResultsTest, LongAnswersAreReadInPieces) {
  const std::string body = "{\"logits\":[" + std::string(1 << 20, '1') + "]}";
  write(batch_response_record("long", 200, body) + answer("b"));
  const FinishedRequests found = finished();
  EXPECT_TRUE(found.is_done("long"));
  EXPECT_TRUE(found.is_done("b"));
  EXPECT_EQ(found.valid_bytes(), static_cast<int64_t>(content().size()));
}

TEST_F(BatchResultsTest, OtherFilesAreLeftAlone) {
  for (const char* text : {"hello\n", "{}\n", "[1]\n",
                           R"({"custom_id":"a","error":null})"
                           "\n",
                           R"({"custom_id":5,"response":{}})"
                           "\n",
                           "\n"}) {
    write(answer("a") + text);
    expect_error(ErrorCode::invalid, {path_, "not the output of a batch", "line 2"},
                 [&] { finished(); });
  }
}

TEST_F(BatchResultsTest, RecordsOfOtherWritersAreKnownToo) {
  write(R"({"id": "x", "custom_id": "a", "response": {"status_code": 200}, "error": null})"
        "\n");
  EXPECT_TRUE(finished().is_done("a"));
}

TEST(FinishedRequests, NamesAreSeenOnce) {
  FinishedRequests found;
  EXPECT_TRUE(found.note_seen("a"));
  EXPECT_FALSE(found.note_seen("a"));
  EXPECT_TRUE(found.note_seen("b"));
  EXPECT_FALSE(found.is_done("a"));
}

}  // namespace
}  // namespace paceline
