#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "base/error.h"
#include "cli/batch_run.h"
#include "cli/chat_input.h"
#include "cli/command.h"
#include "cli/figures.h"
#include "cli/model_opening.h"
#include "cli/usage_error.h"

namespace paceline {
namespace {

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
    BatchRun run(llm, complete, session, served_names(settings));
    counts = run.run(input, finished, results);
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
