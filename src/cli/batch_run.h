// BatchRun runs the requests of a batch, many at once, and writes each result when it is done.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/line_reader.h"
#include "cli/batch_finished.h"
#include "cli/batch_job.h"
#include "cli/batch_results.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "llm/request_pool.h"

namespace paceline {

struct BatchCounts {
  int64_t answered = 0;
  int64_t failed = 0;       // requests that got an error
  int64_t bad_lines = 0;    // malformed lines
  int64_t done_before = 0;  // lines that an earlier run had finished
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompts
  int64_t completion_tokens = 0;
  int64_t drafted_tokens = 0;  // by speculative decoding
  int64_t accepted_tokens = 0;

  int64_t finished() const { return answered + failed + bad_lines; }
};

class BatchRun {
 public:
  // Responses use the first of `model_names`; requests may use any of them.
  BatchRun(LLM& llm, const Settings& settings, Session& session,
           std::vector<std::string> model_names);
  ~BatchRun();
  BatchRun(const BatchRun&) = delete;
  BatchRun& operator=(const BatchRun&) = delete;

  // Runs to the end of the input, or until an interruption: the next run continues there. Throws
  // Error when the results can't be written.
  BatchCounts run(LineReader& input, FinishedRequests& finished, BatchResults& results);

 private:
  struct Files {
    LineReader& input;
    FinishedRequests& finished;
    BatchResults& results;
  };
  struct StopJob {
    std::stop_source stop;
    void operator()() { stop.request_stop(); }
  };
  struct Running {
    BatchJob job;
    std::stop_callback<StopJob> on_interruption;
  };
  struct Part {
    int64_t job_id = 0;
    size_t index = 0;
  };

  void feed(Files& files);
  void take_line(const Line& text, Files& files);
  void start(const BatchLine& line, size_t num_bytes, Files& files);
  void submit_next_part(Files& files);
  void collect(RequestPool::Done done, Files& files);
  void close_if_finished(int64_t job_id, Files& files);
  void write_response(const BatchJob& job, Files& files);
  void write_failure(const std::string& custom_id, const ApiError& error, Files& files);
  void write_line_error(const BatchLine& line, Files& files);
  void choose_model(Call& call) const;
  void show_progress(const Files& files);

  LLM& llm_;
  const Settings& settings_;
  Session& session_;
  std::vector<std::string> model_names_;
  BatchTokenNames names_;
  BatchCounts counts_;
  ProgressBar progress_;
  int64_t lines_taken_ = 0;
  size_t bytes_in_flight_ = 0;  // of the lines of unfinished jobs
  bool at_end_ = false;
  int64_t next_id_ = 0;  // of jobs and of tags
  std::unordered_map<int64_t, std::unique_ptr<Running>> jobs_;
  std::deque<int64_t> unsubmitted_;          // jobs with parts not yet submitted
  std::unordered_map<int64_t, Part> parts_;  // by tag
  RequestPool pool_;
};

}  // namespace paceline
