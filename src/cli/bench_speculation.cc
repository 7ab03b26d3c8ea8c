#include "cli/bench_speculation.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "cli/bench_driver.h"
#include "cli/bench_prompts.h"
#include "cli/kv_reads.h"
#include "engine/step_engine.h"
#include "models/decoder.h"
#include "runner/model_runner.h"

namespace paceline {
namespace {

constexpr int64_t kTextPrompts = 12;  // at least, so that one prompt doesn't decide

// The last `most` tokens of a text; the text ends where its repetition begins.
std::vector<TokenId> text_prompt(const Tokenizer& tokenizer, BenchPrompts kind, uint64_t index,
                                 int64_t most) {
  const bool repeats = kind == BenchPrompts::repeating;
  const auto ids = tokenizer.encode(repeats ? repeating_prompt(index) : story_prompt(index));
  const auto count = std::min(most, std::ssize(ids));
  return {ids.end() - count, ids.end()};
}

}  // namespace

void add_counters(const SpeculationCounters& counters, SpeculationCounters& sum, int64_t times) {
  sum.drafts += times * counters.drafts;
  sum.drafted_tokens += times * counters.drafted_tokens;
  sum.accepted_tokens += times * counters.accepted_tokens;
  sum.failures += times * counters.failures;
  for (size_t i = 0; i < sum.accepted_at.size(); ++i)
    sum.accepted_at[i] += times * counters.accepted_at[i];
}

// An engine and its drafter.
struct SpeculationBench::Side {
  SpeculationLimits limits;
  std::optional<ReplayDrafter> replay;
  std::optional<KvReads> reads;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<BenchDriver> driver;
};

SpeculationBench::SpeculationBench(LoadedModel& model, const BenchRun& run) : run_(run) {
  const SpecAccept accept = model.engine->limits().speculation.accept;
  must_agree_ = accept == SpecAccept::coupled;
  add_side(model, {});
  make_prompts(model);
  answers_.resize(prompts_.size());
  SpeculationSample untimed;
  const auto group = static_cast<size_t>(run_.sequences);
  for (size_t first = 0; first < prompts_.size(); first += group) {
    decode(*sides_[0], first, untimed);
  }
  for (const int64_t length : run_.drafts.lengths) {
    add_side(model, {.num_tokens = length, .accept = accept, .adapts = false});
  }
  add_side(model, {.num_tokens = run_.drafts.longest, .accept = accept});
  // It learns what rows cost.
  decode(*sides_.back(), 0, untimed);
}

SpeculationBench::~SpeculationBench() = default;

void SpeculationBench::make_prompts(LoadedModel& model) {
  const bool is_random = run_.drafts.prompts == BenchPrompts::random;
  PL_CHECK(is_random || model.tokenizer, "text prompts without a tokenizer");
  const int64_t groups = is_random ? 1 : (kTextPrompts + run_.sequences - 1) / run_.sequences;
  BenchDriver driver(*model.engine);
  for (int64_t i = 0; i < groups * run_.sequences; ++i) {
    GenerateRequest request =
        driver.request(is_random ? run_.prompt_tokens : 1, run_.output_tokens);
    if (!is_random) {
      request.prompt = text_prompt(*model.tokenizer, run_.drafts.prompts, static_cast<uint64_t>(i),
                                   run_.prompt_tokens);
    }
    request.sampling.temperature = static_cast<float>(run_.drafts.temperature);
    request.sampling.seed = static_cast<uint64_t>(i);
    request.prefix.read = true;
    prompts_.push_back(std::move(request));
  }
}

void SpeculationBench::add_side(LoadedModel& model, const SpeculationLimits& limits) {
  auto side = std::make_unique<Side>();
  side->limits = limits;
  Drafter* drafter = model.drafter.get();
  if (run_.drafts.drafter == BenchDrafter::replay) drafter = &side->replay.emplace(ReplayOptions{});
  EngineLimits engine_limits = model.engine->limits();
  engine_limits.speculation = limits;
  side->engine =
      std::make_unique<StepEngine>(*model.runner, model.memory, *model.cache, engine_limits,
                                   TokenTexts(), limits.num_tokens > 0 ? drafter : nullptr);
  side->engine->set_observer(
      &side->reads.emplace(model.decoder->config(), model.kv_dtype, model.state_dtype));
  side->driver = std::make_unique<BenchDriver>(*side->engine);
  sides_.push_back(std::move(side));
}

std::vector<SpeculationSample> SpeculationBench::measure() {
  std::vector<SpeculationSample> samples;
  ++seed_;
  for (const auto& side : sides_) samples.push_back({.limits = side->limits});
  const auto group = static_cast<size_t>(run_.sequences);
  for (size_t first = 0; first < prompts_.size(); first += group) {
    for (size_t i = 0; i < sides_.size(); ++i) decode(*sides_[i], first, samples[i]);
  }
  return samples;
}

void SpeculationBench::decode(Side& side, size_t first, SpeculationSample& sample) {
  if (side.replay) side.replay = ReplayDrafter(replay_options());
  const SpeculationCounters before = side.engine->counters().speculation;
  const auto count = static_cast<size_t>(run_.sequences);
  BenchDriver& driver = *side.driver;
  std::vector<std::vector<TokenId>> answers(count);
  std::map<RequestId, size_t> places;
  for (size_t i = 0; i < count; ++i) places[driver.submit(prompts_[first + i])] = i;
  size_t num_begun = 0;
  bool any_ended = false;
  while (driver.is_busy() || num_begun == 0) {
    const bool is_timed = num_begun == count && !any_ended;
    const int64_t kv_bytes = side.reads->bytes();
    const auto begin = BenchClock::now();
    const int64_t drawn = driver.step();
    const double seconds = seconds_since(begin);
    for (const TokenEvent& event : driver.events()) {
      std::vector<TokenId>& answer = answers[places.at(event.request)];
      if (event.token && answer.empty()) ++num_begun;
      if (event.token) answer.push_back(event.token->id);
      any_ended = any_ended || event.ending != nullptr;
    }
    if (!is_timed) continue;
    sample.tokens += drawn;
    sample.seconds += seconds;
    sample.kv_bytes += side.reads->bytes() - kv_bytes;
    ++sample.steps;
  }
  add_counters(side.engine->counters().speculation, sample.counters);
  add_counters(before, sample.counters, -1);
  for (size_t i = 0; i < count; ++i) take_answer(first + i, std::move(answers[i]));
}

ReplayOptions SpeculationBench::replay_options() const {
  return {.answer = [this](std::span<const TokenId> prompt) { return recorded_.after(prompt); },
          .wrong_probability = 1.0 - run_.drafts.acceptance,
          .seed = seed_,
          .vocab_size = sides_[0]->engine->vocab_size()};
}

void SpeculationBench::take_answer(size_t prompt, std::vector<TokenId> tokens) {
  std::vector<TokenId>& expected = answers_[prompt];
  if (expected.empty()) {
    recorded_.add(prompts_[prompt].prompt, tokens);
    expected = std::move(tokens);
    return;
  }
  if (tokens == expected || !must_agree_) return;
  const size_t size = std::min(tokens.size(), expected.size());
  size_t at = 0;
  while (at < size && tokens[at] == expected[at]) ++at;
  throw error_of(ErrorCode::internal,
                 "speculate: prompt {}: token {} of {} differs between decoding with "
                 "drafts and without; they should be equal",
                 prompt, at, expected.size());
}

}  // namespace paceline
