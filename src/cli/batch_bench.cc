#include "cli/batch_bench.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/random.h"

namespace paceline {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Steps a model's engine by itself; no two prompts begin alike.
class Driver {
 public:
  explicit Driver(Engine& engine) : engine_(engine) {}

  GenerateRequest request(int64_t prompt_tokens, int64_t output_tokens) {
    GenerateRequest request{.prompt = random_ids(prompt_tokens), .max_tokens = output_tokens};
    request.sampling.temperature = 0;
    request.ignore_eos = true;
    return request;
  }
  RequestId submit(GenerateRequest request) {
    return engine_.submit(std::move(request), channel_).value();
  }
  // The tokens that came.
  int64_t step() {
    engine_.step();
    channel_->poll(events_);
    return std::count_if(events_.begin(), events_.end(),
                         [](const TokenEvent& event) { return event.token.has_value(); });
  }
  bool is_busy() const { return engine_.num_running() + engine_.num_waiting() > 0; }
  // True once the request has been told about, since the last step.
  bool heard_of(RequestId id) const {
    return std::any_of(events_.begin(), events_.end(),
                       [id](const TokenEvent& event) { return event.request == id; });
  }
  void run_out() {
    step();
    while (is_busy()) step();
  }
  Engine& engine() { return engine_; }

 private:
  std::vector<TokenId> random_ids(int64_t count) {
    std::vector<TokenId> ids;
    ++next_prompt_;
    for (int64_t i = 0; i < count; ++i) {
      const double draw = uniform_draw(next_prompt_, static_cast<uint64_t>(i));
      ids.push_back(static_cast<TokenId>(draw * static_cast<double>(engine_.vocab_size())));
    }
    return ids;
  }

  Engine& engine_;
  std::shared_ptr<Channel> channel_ = std::make_shared<Channel>();
  std::vector<TokenEvent> events_;
  uint64_t next_prompt_ = 0;
};

// Repeats what takes a moment for medians, and not what takes minutes.
class Repetitions {
 public:
  explicit Repetitions(int64_t most) : left_(most) {}
  bool another() { return left_-- > 0 && (first_ || seconds_since(begin_) < kEnough) && started(); }

 private:
  static constexpr double kEnough = 10;  // seconds
  bool started() {
    first_ = false;
    return true;
  }

  int64_t left_;
  bool first_ = true;
  Clock::time_point begin_ = Clock::now();
};

// A batch from its first step to its last. Steps that draw a token for every sequence and compute
// no prompt count as decoding.
BatchRate run_batch(Driver& driver, int64_t num_sequences, const BatchBenchSizes& sizes) {
  for (int64_t i = 0; i < num_sequences; ++i) {
    driver.submit(driver.request(sizes.prompt_tokens, sizes.output_tokens));
  }
  int64_t num_drawn = 0;
  double decode_seconds = 0;
  bool prompts_are_done = false;
  const auto begin = Clock::now();
  do {
    const auto step_begin = Clock::now();
    const int64_t drawn = driver.step();
    if (drawn == num_sequences && prompts_are_done) {
      num_drawn += drawn;
      decode_seconds += seconds_since(step_begin);
    }
    prompts_are_done = prompts_are_done || drawn == num_sequences;
  } while (driver.is_busy());
  const int64_t tokens = num_sequences * (sizes.prompt_tokens + sizes.output_tokens);
  return {.num_sequences = num_sequences,
          .decode_tokens_per_s = static_cast<double>(num_drawn) / decode_seconds,
          .total_tokens_per_s = static_cast<double>(tokens) / seconds_since(begin)};
}

BatchRate measure_rate(Driver& driver, int64_t num_sequences, const BatchBenchSizes& sizes) {
  std::vector<double> decode_rates, total_rates;
  for (Repetitions repetitions(sizes.repetitions); repetitions.another();) {
    const BatchRate rate = run_batch(driver, num_sequences, sizes);
    decode_rates.push_back(rate.decode_tokens_per_s);
    total_rates.push_back(rate.total_tokens_per_s);
  }
  return {.num_sequences = num_sequences,
          .decode_tokens_per_s = median(decode_rates),
          .total_tokens_per_s = median(total_rates)};
}

ClassifyRate measure_classify(Driver& driver, int64_t num_prompts, int64_t most_repetitions) {
  constexpr int64_t kPromptTokens = 20;
  constexpr int64_t kCalls = 4;
  std::vector<double> rates;
  for (Repetitions repetitions(most_repetitions); repetitions.another();) {
    const auto begin = Clock::now();
    for (int64_t call = 0; call < kCalls; ++call) {
      for (int64_t i = 0; i < num_prompts; ++i) {
        GenerateRequest request = driver.request(kPromptTokens, 0);
        request.columns = {1, 2, 3, 4};
        request.prefix.write = PrefixUse::Write::none;
        driver.submit(std::move(request));
      }
      driver.run_out();
    }
    rates.push_back(static_cast<double>(kCalls * num_prompts) / seconds_since(begin));
  }
  return {.num_prompts = num_prompts, .prompts_per_s = median(rates)};
}

double time_to_first_token(Driver& driver, GenerateRequest request) {
  const auto begin = Clock::now();
  driver.submit(std::move(request));
  while (driver.step() == 0) {
  }
  return seconds_since(begin);
}

void measure_first_token(Driver& driver, int64_t longest, int64_t most_repetitions,
                         BatchBench& bench) {
  bench.first_token_prompt = std::min<int64_t>(1000, longest - 2);
  std::vector<double> cold, warm;
  for (Repetitions repetitions(most_repetitions); repetitions.another();) {
    const GenerateRequest first = driver.request(bench.first_token_prompt, 1);
    GenerateRequest second = first;
    // Another question behind the same beginning.
    for (size_t i = second.prompt.size() - 16; i < second.prompt.size(); ++i) {
      second.prompt[i] =
          (second.prompt[i] + 1) % static_cast<TokenId>(driver.engine().vocab_size());
    }
    cold.push_back(time_to_first_token(driver, first));
    warm.push_back(time_to_first_token(driver, second));
  }
  bench.first_token_cold_s = median(cold);
  bench.first_token_warm_s = median(warm);
}

// On an engine that keeps its steps short, as a server for streams does.
PrefillBeside measure_beside(LoadedModel& model, int64_t prompt_tokens) {
  constexpr double kSlowdown = 2.5;
  EngineLimits limits = model.engine->limits();
  limits.max_step_slowdown = kSlowdown;
  Engine engine(*model.runner, *model.backend, model.memory, *model.cache, limits, {});
  Driver driver(engine);
  constexpr int64_t kSteps = 24;
  PrefillBeside result{.prompt_tokens = prompt_tokens};
  result.alone_s = time_to_first_token(driver, driver.request(prompt_tokens, 1));
  GenerateRequest endless = driver.request(32, prompt_tokens);
  endless.max_tokens = prompt_tokens;
  const RequestId stream = driver.submit(std::move(endless));
  while (!driver.heard_of(stream)) driver.step();
  std::vector<double> steps;
  for (int64_t i = 0; i < kSteps; ++i) {
    const auto begin = Clock::now();
    driver.step();
    steps.push_back(seconds_since(begin));
  }
  result.unloaded_step_s = median(steps);
  const auto begin = Clock::now();
  const RequestId prompt = driver.submit(driver.request(prompt_tokens, 1));
  auto last_token = begin;
  do {
    driver.step();
    if (!driver.heard_of(stream)) continue;
    const auto now = Clock::now();
    result.longest_gap_s =
        std::max(result.longest_gap_s, std::chrono::duration<double>(now - last_token).count());
    last_token = now;
  } while (!driver.heard_of(prompt));
  result.beside_s = seconds_since(begin);
  driver.engine().cancel(stream);
  driver.run_out();
  return result;
}

size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

void measure_memory(Driver& driver, int64_t prompt_tokens, BatchBench& bench) {
  const int64_t count = std::min<int64_t>(128, driver.engine().limits().max_num_seqs);
  const size_t before = heap_bytes();
  for (int64_t i = 0; i < count; ++i) driver.submit(driver.request(prompt_tokens, 512));
  const size_t waiting = heap_bytes();
  while (driver.engine().num_running() < count) driver.step();
  const size_t running = heap_bytes();
  bench.bytes_per_waiting = (waiting - before) / static_cast<size_t>(count);
  bench.bytes_per_running = (std::max(running, before) - before) / static_cast<size_t>(count);
  driver.engine().end_all();
}

}  // namespace

BatchBench measure_batches(LoadedModel& model, const BatchBenchSizes& sizes,
                           const BatchBenchNotice& notice) {
  Driver driver(*model.engine);
  BatchBench bench;
  driver.submit(driver.request(sizes.prompt_tokens, 8));
  driver.run_out();  // warm
  for (const int64_t count : {1, 8, 16, 32}) {
    notice(fmt::format("{} sequences", count));
    bench.generate.push_back(measure_rate(driver, count, sizes));
  }
  for (const int64_t count : {1, 8, 32}) {
    notice(fmt::format("classify, {} prompts a call", count));
    bench.classify.push_back(measure_classify(driver, count, sizes.repetitions));
  }
  const int64_t longest = driver.engine().limits().max_model_len;
  notice("the first token of a long prompt");
  measure_first_token(driver, longest, sizes.repetitions, bench);
  constexpr int64_t kLongPrompt = 4000;
  if (longest > kLongPrompt + 64) {
    notice(fmt::format("a stream beside a prompt of {} tokens", kLongPrompt));
    bench.beside = measure_beside(model, kLongPrompt);
  }
  int64_t tokens = 0;
  for (int g = 0; g < model.cache->num_groups(); ++g) tokens += model.cache->pool(g).num_blocks();
  bench.kv_bytes_per_token =
      model.kv_bytes / static_cast<size_t>(tokens * model.cache->block_size());
  measure_memory(driver, 16, bench);
  return bench;
}

}  // namespace paceline
