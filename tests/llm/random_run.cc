#include "tests/llm/random_run.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <thread>

#include "base/error.h"
#include "base/system_memory.h"
#include "load/cache_sizing.h"
#include "models/decoder.h"
#include "tests/kernels/chosen_isa.h"

namespace paceline::testing {
namespace {

using Kind = RandomRequest::Kind;

void submit(RequestPool& pool, int64_t tag, const RandomRequest& request, std::stop_token stop) {
  GenerateOptions options = request.options;
  options.cancelled = stop;
  if (request.kind == Kind::generate) {
    pool.generate(tag, request.prompt, options, request.n);
  } else if (request.kind == Kind::classify) {
    pool.classify(tag, request.prompt,
                  {.labels = request.labels,
                   .want_token_id = request.want_token_id,
                   .with_logits = request.with_logits,
                   .sampling = options});
  } else if (request.kind == Kind::embed) {
    pool.embed(tag, request.prompt,
               {.cache_salt = options.cache_salt, .priority = options.priority, .cancelled = stop});
  } else if (request.kind == Kind::pairs) {
    pool.score_pairs(
        tag, request.pairs,
        {.cache_salt = options.cache_salt, .priority = options.priority, .cancelled = stop});
  } else if (request.kind == Kind::decide) {
    DecideOptions asked{
        .cache_salt = options.cache_salt, .priority = options.priority, .cancelled = stop};
    if (request.is_calibrated) asked.content_free_input = "N/A";
    pool.decide(tag, std::get<std::string>(request.prompt), request.questions, asked);
  } else {
    pool.score(tag, request.prompt,
               {.num_top_logprobs = request.num_top_logprobs, .cancelled = stop});
  }
}

}  // namespace

Alone::Alone(const Subject& subject) {
  LoadOptions options = subject.load;
  options.num_threads = 1;
  options.max_num_seqs = 1;
  options.prefix_caching = false;
  options.max_queued_tokens = std::numeric_limits<int32_t>::max();  // all may wait in the engine
  const ChosenIsa chosen(subject.isa);
  state_.open(load_model(options));
}

RandomAnswer Alone::answer(const RandomRequest& request) {
  if (request.kind != Kind::generate) return run(request);
  std::vector<Completion> choices;
  RandomRequest choice = request;
  choice.n = 1;
  for (int32_t k = 0; k < request.n; ++k) {
    RandomAnswer answer = run(choice);
    if (std::holds_alternative<ErrorInfo>(answer)) return answer;
    choices.push_back(std::move(std::get<std::vector<Completion>>(answer).front()));
    choice.options.seed = *choice.options.seed + 1;
  }
  return choices;
}

RandomAnswer Alone::run(const RandomRequest& request) {
  RequestPool pool(state_);
  submit(pool, 0, request, {});
  while (state_.model->engine->step()) {
  }
  return std::move(pool.next()->result);
}

Together::Together(const RandomCase& drawn, const Alone& alone, uint64_t seed)
    : case_(drawn), dice_(seed) {
  load(alone.model());
  if (!drawn.on_thread) return;
  const AdmissionWindow window{.timeout = std::chrono::milliseconds(drawn.engine.batch_timeout_ms),
                               .num_requests = drawn.engine.batch_size};
  state_.thread = std::make_unique<EngineThread>(engine(), window);
}

// Loads with a cache for the case's number of contexts, or slightly more if blocks and windows need
// it.
void Together::load(const LoadedModel& model) {
  LoadOptions options = case_.engine;
  options.max_queued_tokens = std::numeric_limits<int32_t>::max();  // all may wait in the engine
  const CacheSize one = size_cache(model.decoder->config(),
                                   {.block_size = options.block_size,
                                    .max_batched_tokens = options.max_num_batched_tokens,
                                    .max_num_seqs = 1,
                                    .max_model_len = options.max_model_len,
                                    .dtype = model.kv_dtype,
                                    .state_dtype = model.state_dtype},
                                   static_cast<size_t>(system_memory().free));
  const ChosenIsa chosen(case_.subject.isa);
  for (double bytes = static_cast<double>(one.bytes) * case_.contexts;; bytes *= 1.25) {
    options.kv_cache_memory_bytes = static_cast<size_t>(bytes);
    try {
      state_.open(load_model(options));
      return;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::exhausted) throw;
    }
  }
}

std::vector<RandomAnswer> Together::run() {
  RequestPool pool(state_);
  std::vector<RandomAnswer> answers(case_.requests.size());
  stops_ = std::vector<std::stop_source>(case_.requests.size());  // copies would share one state
  num_submitted_ = 0;
  if (state_.thread) {
    run_on_thread(pool);
  } else {
    run_stepped(pool);
  }
  while (auto done = pool.next()) {
    answers[static_cast<size_t>(done->tag)] = std::move(done->result);
  }
  return answers;
}

EngineCounters Together::finish() {
  state_.thread.reset();
  engine().step();  // processes the last releases
  engine().check_integrity();
  const StateCache& cache = engine().cache();
  for (int g = 0; g < cache.num_groups(); ++g) {
    EXPECT_EQ(cache.pool(g).num_free(), cache.pool(g).num_blocks()) << "blocks are lost";
  }
  return engine().counters();
}

void Together::submit_next(RequestPool& pool) {
  const size_t i = num_submitted_++;
  submit(pool, static_cast<int64_t>(i), case_.requests[i], stops_[i].get_token());
}

void Together::cancel_some(int64_t one_in) {
  for (size_t i = 0; i < stops_.size(); ++i) {
    if (case_.requests[i].is_cancelled && dice_.one_in(one_in)) stops_[i].request_stop();
  }
}

void Together::run_stepped(RequestPool& pool) {
  bool more = true;
  while (more || num_submitted_ < stops_.size()) {
    while (num_submitted_ < stops_.size() && !dice_.one_in(3)) submit_next(pool);
    cancel_some(8);
    more = engine().step();
    engine().check_integrity();
  }
}

void Together::run_on_thread(RequestPool& pool) {
  const auto pause = [this](int64_t most_us) {
    std::this_thread::sleep_for(std::chrono::microseconds(dice_.below(most_us)));
  };
  while (num_submitted_ < stops_.size()) {
    submit_next(pool);
    if (dice_.one_in(2)) pause(400);
    cancel_some(8);
  }
  pause(2000);
  cancel_some(1);
}

}  // namespace paceline::testing
