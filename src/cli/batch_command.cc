#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>
#include <memory>
#include <stop_token>
#include <unordered_map>

#include "base/error.h"
#include "base/line_reader.h"
#include "cli/batch_job.h"
#include "cli/batch_results.h"
#include "cli/chat_input.h"
#include "cli/command.h"
#include "cli/figures.h"
#include "cli/model_opening.h"
#include "cli/progress.h"
#include "cli/usage_error.h"

namespace paceline {
namespace {

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

// Keeps the engine busy, and bounds the memory of a file of long prompts.
constexpr int64_t kInFlightPerSequence = 4;
constexpr size_t kMaxBytesInFlight = 64 << 20;

// An interruption ended some of its choices: the job has no result yet.
bool was_cancelled(const BatchJob& job) {
  return std::any_of(job.parts.begin(), job.parts.end(), [](const CompletedPart& part) {
    return std::any_of(part.choices.begin(), part.choices.end(), [](const Completion& completion) {
      return completion.finish_reason == "cancelled";
    });
  });
}

ChatRequest* chat_of(Call& call) {
  auto* generation = std::get_if<GenerationCall>(&call);
  return generation == nullptr ? nullptr : std::get_if<ChatRequest>(&generation->request);
}

// Runs the requests of a batch, many at once, and writes each result when it is done.
class BatchRun {
 public:
  struct Files {
    LineReader& input;
    FinishedRequests& finished;
    BatchResults& results;
  };

  BatchRun(LLM& llm, const Settings& settings, Session& session, const Files& files)
      : llm_(llm),
        settings_(settings),
        session_(session),
        input_(files.input),
        finished_(files.finished),
        results_(files.results),
        model_names_(served_names(settings)),
        names_(settings),
        progress_(session.shows_progress(), "requests", 0),
        pool_(llm) {}
  ~BatchRun() {
    for (auto& [id, running] : jobs_) running->job.stop.request_stop();
  }
  BatchRun(const BatchRun&) = delete;
  BatchRun& operator=(const BatchRun&) = delete;

  // Runs to the end of the input, or until an interruption: the next run continues there. Throws
  // Error when the results can't be written.
  BatchCounts run() {
    while (true) {
      feed();
      auto done = pool_.next();
      if (!done) break;
      collect(std::move(*done));
      show_progress();
    }
    return counts_;
  }

 private:
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

  void feed() {
    const int64_t most = kInFlightPerSequence * settings_.load.max_num_seqs;
    while (!session_.interrupted() && pool_.in_flight() < most) {
      if (!unsubmitted_.empty()) {
        submit_next_part();
        continue;
      }
      if (at_end_ || bytes_in_flight_ > kMaxBytesInFlight) return;
      const auto line = input_.next();
      if (!line) {
        at_end_ = true;
      } else if (!line->is_blank() || line->is_too_long) {
        take_line(*line);
      }
    }
  }

  void take_line(const Line& text) {
    ++lines_taken_;
    BatchLine line = read_batch_line(text);
    if (!line.error && !finished_.note_seen(line.custom_id)) {
      set_line_error(line, "duplicate_custom_id",
                     fmt::format("custom_id: {} is in an earlier line too", line.custom_id));
    }
    if (line.error) {
      write_line_error(line);
    } else if (finished_.is_done(line.custom_id)) {
      ++counts_.done_before;
    } else {
      start(line, text.text.size());
    }
  }

  void choose_model(Call& call) const {
    CommonFields& common = common_fields_of(call);
    const auto& model = common.model;
    if (!model ||
        std::find(model_names_.begin(), model_names_.end(), *model) != model_names_.end()) {
      return;
    }
    std::vector<std::string> names = model_names_;
    for (const LoraSource& adapter : settings_.load.loras) names.push_back(adapter.name);
    if (std::find(names.begin(), names.end(), *model) == names.end()) {
      throw RequestError(
          "model", ErrorReason::model_not_found,
          fmt::format(
              "model: found {}, expected {} (--served-model-name gives the model other names)",
              *model, fmt::join(names, " or ")));
    }
    common.lora = *model;
  }

  void start(const BatchLine& line, size_t num_bytes) {
    try {
      Call call = parse_batch_call(*line.dialect, line.body);
      choose_model(call);
      if (ChatRequest* chat = chat_of(call)) add_system_message(settings_.system, chat->input);
      const size_t parts = num_parts(call);
      BatchJob job{.custom_id = line.custom_id,
                   .num_bytes = num_bytes,
                   .call = std::move(call),
                   .parts = std::vector<CompletedPart>(parts)};
      const StopJob stop_job{job.stop};
      const int64_t id = next_id_++;
      jobs_.emplace(id, new Running{.job = std::move(job),
                                    .on_interruption = std::stop_callback<StopJob>(
                                        session_.stop_token(), stop_job)});
      bytes_in_flight_ += num_bytes;
      unsubmitted_.push_back(id);
    } catch (const Error& error) {
      write_failure(line.custom_id, api_error(error));
    }
  }

  void submit_next_part() {
    const int64_t job_id = unsubmitted_.front();
    BatchJob& job = jobs_.at(job_id)->job;
    const size_t index = job.next_part++;
    try {
      const int64_t tag = next_id_++;
      submit_part(pool_, llm_, tag, job, index, settings_.generate.seed);
      parts_.emplace(tag, Part{.job_id = job_id, .index = index});
      ++job.num_in_flight;
    } catch (const Error& error) {
      if (!job.error) job.error = api_error(error);
      job.stop.request_stop();
    }
    if (job.error || job.next_part == job.parts.size()) unsubmitted_.pop_front();
    close_if_finished(job_id);
  }

  void collect(RequestPool::Done done) {
    const auto found = parts_.find(done.tag);
    const Part part = found->second;
    parts_.erase(found);
    BatchJob& job = jobs_.at(part.job_id)->job;
    --job.num_in_flight;
    if (auto* choices = std::get_if<std::vector<Completion>>(&done.result)) {
      job.parts[part.index].choices = std::move(*choices);
    } else if (auto* classification = std::get_if<Classification>(&done.result)) {
      job.parts[part.index].classification = std::move(*classification);
    } else if (auto* embedding = std::get_if<Embedding>(&done.result)) {
      job.parts[part.index].embedding = std::move(embedding->values);
      job.parts[part.index].prompt_tokens = embedding->usage.prompt_tokens;
    } else if (!job.error) {
      job.error = api_error(std::get<ErrorInfo>(done.result));
      job.stop.request_stop();
      std::erase(unsubmitted_, part.job_id);
    }
    close_if_finished(part.job_id);
  }

  void close_if_finished(int64_t job_id) {
    const BatchJob& job = jobs_.at(job_id)->job;
    if (!job.is_finished()) return;
    const bool is_unfinished =
        session_.interrupted() &&
        (was_cancelled(job) || (job.error && job.error->reason == ErrorReason::cancelled));
    if (!is_unfinished) write_response(job);
    bytes_in_flight_ -= job.num_bytes;
    jobs_.erase(job_id);
  }

  void write_response(const BatchJob& job) {
    if (job.error) return write_failure(job.custom_id, *job.error);
    const auto& model = common_fields_of(job.call).model;
    const BatchResponse answer = respond_to(job, model.value_or(model_names_.front()), names_);
    constexpr int kOk = 200;
    results_.append(batch_response_record(job.custom_id, kOk, answer.body));
    ++counts_.answered;
    counts_.prompt_tokens += answer.usage.prompt_tokens;
    counts_.cached_tokens += answer.usage.cached_tokens.value_or(0);
    counts_.completion_tokens += answer.usage.completion_tokens;
    counts_.drafted_tokens += answer.usage.drafted_tokens;
    counts_.accepted_tokens += answer.usage.accepted_tokens;
  }

  void write_failure(const std::string& custom_id, const ApiError& error) {
    results_.append(
        batch_response_record(custom_id, openai_kind(error.reason).status, error_json(error)));
    ++counts_.failed;
  }

  void write_line_error(const BatchLine& line) {
    if (finished_.is_reported(line.number)) {
      ++counts_.done_before;
      return;
    }
    results_.append(batch_error_record(line));
    ++counts_.bad_lines;
  }

  void show_progress() {
    const double share = input_.share_read();
    const auto total =
        share > 0 ? static_cast<int64_t>(static_cast<double>(lines_taken_) / share) : 0;
    progress_.update(counts_.finished(), std::max<int64_t>(total - counts_.done_before, 0));
  }

  LLM& llm_;
  const Settings& settings_;
  Session& session_;
  LineReader& input_;
  FinishedRequests& finished_;
  BatchResults& results_;
  std::vector<std::string> model_names_;  // of requests; responses use the first
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

struct stat status_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    throw error_of(ErrorCode::not_found, "{}: {}", path, std::strerror(errno));
  }
  return status;
}

void check_batch_options(const Settings& settings) {
  if (settings.input.empty()) throw UsageError("nothing to read: give --input FILE");
  if (settings.output.empty()) throw UsageError("nowhere to write: give --output FILE");
}

// The input must be a file: a resumed run reads it again.
struct stat checked_input(const std::string& path) {
  const struct stat status = status_of(path);
  if (!S_ISREG(status.st_mode)) {
    throw error_of(ErrorCode::invalid,
                   "{}: not a regular file; a batch that is resumed "
                   "after a crash has to read its input again",
                   path);
  }
  return status;
}

void check_different(const struct stat& input, const std::string& output) {
  struct stat status {};
  if (stat(output.c_str(), &status) != 0) return;
  if (status.st_dev == input.st_dev && status.st_ino == input.st_ino) {
    throw error_of(ErrorCode::invalid, "{}: both the input and the output", output);
  }
}

FinishedRequests take_up(BatchResults& results) {
  if (!results.is_file()) return {};
  FinishedRequests finished = read_finished_requests(results.descriptor(), results.path());
  results.cut(finished.valid_bytes());
  return finished;
}

std::string grouped_count(int64_t count) {
  constexpr int64_t kFractionsShown = 100;  // grouped_number() shows them below
  return count < kFractionsShown ? std::to_string(count) : grouped_number(count);
}

std::string summary(const BatchCounts& counts, double seconds) {
  std::string text = fmt::format("batch: {} answered, {} failed", grouped_count(counts.answered),
                                 grouped_count(counts.failed));
  if (counts.bad_lines > 0) {
    text += fmt::format(", {} malformed {}", grouped_count(counts.bad_lines),
                        counts.bad_lines == 1 ? "line" : "lines");
  }
  if (counts.done_before > 0) {
    text += fmt::format(", {} done before", grouped_count(counts.done_before));
  }
  const int64_t tokens = counts.prompt_tokens + counts.completion_tokens;
  const double rate = seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  text += fmt::format("\n{} prompt tokens ({} cached) and {} output tokens",
                      grouped_count(counts.prompt_tokens), grouped_count(counts.cached_tokens),
                      grouped_count(counts.completion_tokens));
  return text + fmt::format(" in {:.1f} s, {} tok/s", seconds, grouped_number(rate));
}

}  // namespace

int run_batch(const Settings& settings, Session& session) {
  check_batch_options(settings);
  check_different(checked_input(settings.input), settings.output);
  check_adapter_names(settings, served_names(settings));
  std::signal(SIGXFSZ, SIG_IGN);  // a file too large is an error like a full disk
  BatchResults results(settings.output);
  FinishedRequests finished = take_up(results);
  LineReader input(settings.input);
  LLM llm = open_model(settings, session);

  const auto start = std::chrono::steady_clock::now();
  BatchCounts counts;
  {
    const Interrupt::Graceful graceful(session.interrupt());
    const Settings complete = with_system_prompt(settings, llm, session);
    counts = BatchRun(llm, complete, session, {input, finished, results}).run();
    results.finish();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  session.print_note(summary(counts, took.count()));
  if (settings.verbose && counts.drafted_tokens > 0) {
    session.print_note(draft_figures({.drafted = counts.drafted_tokens,
                                      .accepted = counts.accepted_tokens,
                                      .output = counts.completion_tokens}));
  }
  session.explain_interruption("run the same command again to do the rest");
  llm.close();
  return session.exit_code(0);
}

}  // namespace paceline
