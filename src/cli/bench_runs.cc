#include "cli/bench_runs.h"

#include <malloc.h>

#include <algorithm>

#include "engine/step_engine.h"
#include "models/decoder.h"
#include "runner/model_runner.h"

namespace paceline {
namespace {

// Times the steps from its construction to finish().
class Stopwatch {
 public:
  Stopwatch(const BenchDriver& driver, const KvReads& reads)
      : driver_(driver),
        reads_(reads),
        steps_(driver.num_steps()),
        kv_bytes_(reads.bytes()),
        cached_(driver.num_cached_tokens()) {}

  BenchSample finish() const {
    return {.seconds = seconds_since(begin_),
            .steps = driver_.num_steps() - steps_,
            .kv_bytes = reads_.bytes() - kv_bytes_,
            .cached_tokens = driver_.num_cached_tokens() - cached_};
  }

 private:
  const BenchDriver& driver_;
  const KvReads& reads_;
  int64_t steps_;
  int64_t kv_bytes_;
  int64_t cached_;
  BenchClock::time_point begin_ = BenchClock::now();
};

// Times a request to its first token and to its end.
BenchSample time_prompt(BenchDriver& driver, const KvReads& reads, GenerateRequest request) {
  const auto prompt_tokens = static_cast<int64_t>(request.prompt.size());
  request.max_tokens = 1;
  const Stopwatch watch(driver, reads);
  driver.submit(std::move(request));
  while (driver.step() == 0) {
  }
  BenchSample sample = watch.finish();
  sample.tokens = prompt_tokens;
  sample.rows = prompt_tokens - sample.cached_tokens;
  sample.unit_seconds = sample.seconds;
  return sample;
}

double median_step(BenchDriver& driver, int64_t num_steps) {
  std::vector<double> steps;
  for (int64_t i = 0; i < num_steps; ++i) {
    const auto begin = BenchClock::now();
    driver.step();
    steps.push_back(seconds_since(begin));
  }
  std::sort(steps.begin(), steps.end());
  return steps[steps.size() / 2];
}

size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace

BenchRunner::BenchRunner(LoadedModel& model, double max_step_slowdown, StepObserver* observer)
    : model_(model),
      max_step_slowdown_(max_step_slowdown),
      reads_(model.decoder->config(), model.kv_dtype, model.state_dtype, observer),
      driver_(*model.engine) {
  model.engine->set_observer(&reads_);
}

BenchRunner::~BenchRunner() { model_.engine->set_observer(nullptr); }

void BenchRunner::warm_up() {
  constexpr int64_t kPrompt = 64;
  constexpr int64_t kOutput = 8;
  const int64_t longest = driver_.engine().limits().max_model_len;
  const int64_t prompt = std::clamp<int64_t>(longest - kOutput, 1, kPrompt);
  driver_.submit(driver_.request(prompt, std::min(kOutput, longest - prompt)));
  driver_.run_out();
}

void BenchRunner::prepare(const BenchRun& run) {
  if (run.test == BenchTest::speculate) speculation_.emplace(model_, run);
  if (run.test != BenchTest::decode) return;
  context_ = driver_.request(run.prompt_tokens, 1);
  driver_.submit(context_);
  driver_.run_out();
}

BenchSample BenchRunner::run(const BenchRun& run) {
  using Test = BenchSample (BenchRunner::*)(const BenchRun&);
  // In the order of BenchTest.
  static constexpr Test kTests[] = {
      &BenchRunner::prefill,  &BenchRunner::decode, &BenchRunner::batch,  &BenchRunner::mixed,
      &BenchRunner::classify, &BenchRunner::cached, &BenchRunner::memory, &BenchRunner::speculate};
  return (this->*kTests[static_cast<size_t>(run.test)])(run);
}

BenchSample BenchRunner::prefill(const BenchRun& run) {
  return time_prompt(driver_, reads_, driver_.request(run.prompt_tokens, 1));
}

BenchSample BenchRunner::decode(const BenchRun& run) {
  GenerateRequest request = context_;
  // Prefill draws the first token of the output.
  request.max_tokens = run.output_tokens + 1;
  request.prefix.read = true;
  driver_.submit(std::move(request));
  while (driver_.step() == 0) {
  }
  const Stopwatch watch(driver_, reads_);
  int64_t tokens = 0;
  while (driver_.is_busy()) tokens += driver_.step();
  BenchSample sample = watch.finish();
  sample.cached_tokens = 0;  // the context isn't measured
  sample.tokens = sample.rows = sample.head_rows = tokens;
  sample.unit_seconds = sample.seconds / static_cast<double>(tokens);
  return sample;
}

// Steps that draw a token for every sequence and compute no prompt tokens count as decoding.
BenchSample BenchRunner::batch(const BenchRun& run) {
  for (int64_t i = 0; i < run.sequences; ++i) {
    driver_.submit(driver_.request(run.prompt_tokens, run.output_tokens));
  }
  BenchSample decoding;
  bool prompts_are_done = false;
  const Stopwatch watch(driver_, reads_);
  do {
    const auto begin = BenchClock::now();
    const int64_t kv_bytes = reads_.bytes();
    const int64_t drawn = driver_.step();
    if (drawn == run.sequences && prompts_are_done) {
      decoding.tokens += drawn;
      decoding.seconds += seconds_since(begin);
      decoding.kv_bytes += reads_.bytes() - kv_bytes;
      ++decoding.steps;
    }
    prompts_are_done = prompts_are_done || drawn == run.sequences;
  } while (driver_.is_busy());
  const BenchSample all = watch.finish();
  decoding.rows = decoding.head_rows = decoding.tokens;
  decoding.cached_tokens = all.cached_tokens;
  decoding.unit_seconds =
      decoding.seconds / static_cast<double>(std::max<int64_t>(decoding.steps, 1));
  const int64_t tokens = run.sequences * (run.prompt_tokens + run.output_tokens);
  decoding.figures = {{"total_tokens_per_second", static_cast<double>(tokens) / all.seconds}};
  return decoding;
}

// On an engine that limits its steps' time, as a server does for streams.
BenchSample BenchRunner::mixed(const BenchRun& run) {
  constexpr int64_t kSteps = 8;  // without the prompt, for comparison
  EngineLimits limits = model_.engine->limits();
  limits.max_step_slowdown = max_step_slowdown_;
  StepEngine engine(*model_.runner, model_.memory, *model_.cache, limits, {});
  KvReads reads(model_.decoder->config(), model_.kv_dtype, model_.state_dtype);
  engine.set_observer(&reads);
  BenchDriver driver(engine);
  const double alone = prefill(run).seconds;
  const int64_t stream_prompt = context_of(run) - run.prompt_tokens;
  std::vector<RequestId> streams;
  for (int64_t i = 0; i < run.sequences; ++i) {
    streams.push_back(driver.submit(driver_.request(stream_prompt, run.prompt_tokens)));
  }
  while (!driver.has_event(streams.back())) driver.step();
  const double unloaded = median_step(driver, kSteps);
  const Stopwatch watch(driver, reads);
  const RequestId prompt = driver.submit(driver_.request(run.prompt_tokens, 1));
  auto last_token = BenchClock::now();
  double longest_gap = 0;
  int64_t drawn = 0;
  do {
    drawn += driver.step();
    if (!driver.has_event(streams.front())) continue;
    longest_gap = std::max(longest_gap, seconds_since(last_token));
    last_token = BenchClock::now();
  } while (!driver.has_event(prompt));
  BenchSample sample = watch.finish();
  for (const RequestId stream : streams) driver.engine().cancel(stream);
  driver.run_out();
  sample.tokens = sample.rows = run.prompt_tokens + drawn - 1;
  sample.head_rows = drawn;
  sample.unit_seconds = sample.seconds;
  sample.figures = {{"alone_seconds", alone},
                    {"unloaded_step_seconds", unloaded},
                    {"longest_gap_seconds", longest_gap}};
  return sample;
}

BenchSample BenchRunner::classify(const BenchRun& run) {
  constexpr int64_t kCalls = 4;
  const Stopwatch watch(driver_, reads_);
  for (int64_t call = 0; call < kCalls; ++call) {
    for (int64_t i = 0; i < run.sequences; ++i) {
      GenerateRequest request = driver_.request(run.prompt_tokens, 0);
      request.columns = {0, 1};
      request.prefix.write = PrefixUse::Write::none;
      driver_.submit(std::move(request));
    }
    driver_.run_out();
  }
  BenchSample sample = watch.finish();
  const int64_t prompts = kCalls * run.sequences;
  sample.tokens = sample.rows = prompts * run.prompt_tokens;
  sample.unit_seconds = sample.seconds / static_cast<double>(kCalls);
  sample.figures = {{"prompts_per_second", static_cast<double>(prompts) / sample.seconds}};
  return sample;
}

// A new ending after the same prefix.
BenchSample BenchRunner::cached(const BenchRun& run) {
  constexpr size_t kEnd = 16;
  const GenerateRequest first = driver_.request(run.prompt_tokens, 1);
  GenerateRequest second = first;
  second.prefix.read = true;
  const size_t size = second.prompt.size();
  const auto vocab_size = static_cast<TokenId>(driver_.engine().vocab_size());
  for (size_t i = size - std::min(kEnd, size); i < size; ++i) {
    second.prompt[i] = (second.prompt[i] + 1) % vocab_size;
  }
  const double cold = time_prompt(driver_, reads_, first).seconds;
  BenchSample sample = time_prompt(driver_, reads_, second);
  sample.figures = {{"cold_seconds", cold}};
  return sample;
}

// The main figures are those without drafts.
BenchSample BenchRunner::speculate(const BenchRun& /*run*/) {
  std::vector<SpeculationSample> samples = speculation_->measure();
  const SpeculationSample& plain = samples.front();
  BenchSample sample{.seconds = plain.seconds,
                     .tokens = plain.tokens,
                     .rows = plain.tokens,
                     .head_rows = plain.tokens,
                     .steps = plain.steps,
                     .kv_bytes = plain.kv_bytes};
  sample.unit_seconds = sample.seconds / static_cast<double>(std::max<int64_t>(sample.steps, 1));
  sample.drafted.assign(samples.begin() + 1, samples.end());
  return sample;
}

BenchSample BenchRunner::memory(const BenchRun& run) {
  constexpr int64_t kOutput = 512;
  const int64_t longest = driver_.engine().limits().max_model_len;
  const int64_t output = std::min(kOutput, longest - run.prompt_tokens);
  const auto per_sequence = [&run](size_t before, size_t after) {
    return static_cast<double>(std::max(after, before) - before) /
           static_cast<double>(run.sequences);
  };
  std::vector<RequestId> ids(static_cast<size_t>(run.sequences));
  const size_t before = heap_bytes();
  for (RequestId& id : ids) id = driver_.submit(driver_.request(run.prompt_tokens, output));
  const size_t waiting = heap_bytes();
  while (driver_.is_busy() && driver_.engine().num_running() < run.sequences) driver_.step();
  const size_t running = heap_bytes();
  for (const RequestId id : ids) driver_.engine().cancel(id);
  driver_.run_out();
  return {.figures = {{"bytes_per_waiting_sequence", per_sequence(before, waiting)},
                      {"bytes_per_running_sequence", per_sequence(before, running)},
                      {"kv_bytes_per_token", kv_bytes_per_token(model_)}}};
}

}  // namespace paceline
