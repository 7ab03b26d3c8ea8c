#include "llm/request_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/time_source.h"
#include "llm/llm_state.h"
#include "llm/shared_prefix.h"
#include "text/chat_turn.h"
#include "text/classify_job.h"
#include "text/completion_builder.h"
#include "text/decide_job.h"
#include "text/describe.h"
#include "text/embedding.h"
#include "text/make_request.h"
#include "text/pair_scoring.h"

namespace paceline {
namespace {

// Scores of pairs, of one or more engine requests.
struct PairJob {
  PairScoring scoring;
  std::vector<std::vector<float>> results;  // of the requests
  size_t num_ended = 0;
  Usage usage = {};

  void add(size_t index, TokenEvent& event) {
    if (event.prompt) {
      PromptOutputs& outputs = *event.prompt;
      results[index] = std::move(outputs.pooled.empty() ? outputs.column_logits : outputs.pooled);
    }
    if (!event.ending) return;
    ++num_ended;
    usage.prompt_tokens += event.ending->stats.prompt_tokens;
    usage.cached_tokens += event.ending->stats.cached_tokens;
  }
  PairScores finish() { return {.values = scoring.scores(results), .usage = usage}; }
};

// One request of the pool: a completion per choice, a classification, decisions, a score, an
// embedding, or scores of pairs.
struct Job {
  int64_t tag = 0;
  std::vector<CompletionBuilder> choices;
  std::optional<ClassifyJob> classification;
  std::optional<DecideJob> decisions;
  std::optional<std::vector<Logprob>> scored;
  std::optional<EmbedOptions> embedding;
  std::optional<Embedding> embedded;
  std::optional<PairJob> pairs;
  std::optional<ErrorInfo> error;
  std::vector<RequestId> ids;                // its engine requests in the order of submission
  std::vector<Clock::time_point> submitted;  // the same
  CallMetrics metrics = {};
  size_t num_unsubmitted = 0;
  int64_t prompt_tokens = 0;

  size_t index_of(RequestId id) const {
    return static_cast<size_t>(std::find(ids.begin(), ids.end(), id) - ids.begin());
  }
};

// Why the request of this event has no result.
std::optional<ErrorInfo> failure_of(const TokenEvent& event) {
  if (!event.ending) return std::nullopt;
  if (event.ending->error) return event.ending->error;
  if (event.ending->finish.reason != FinishReason::cancelled) return std::nullopt;
  return ErrorInfo{.code = ErrorCode::cancelled, .message = "cancelled by the caller"};
}

Embedding embedding_of(const TextModel& model, TokenEvent& event, const EmbedOptions& options) {
  Embedding embedding{.values = finish_embedding(model, std::move(event.prompt->pooled), options),
                      .usage = {}};
  embedding.usage.prompt_tokens = event.ending->stats.prompt_tokens;
  embedding.usage.cached_tokens = event.ending->stats.cached_tokens;
  return embedding;
}

}  // namespace

struct RequestPool::State {
  explicit State(LLM::State& owner) : llm(owner), model(*owner.text), shared_prefix(model.engine) {}

  struct Waiting {
    int64_t job_id = 0;
    size_t index = 0;                        // among the job's
    std::optional<GenerateRequest> request;  // nothing: of decisions, made when it is submitted
  };

  int64_t add(Job job, std::vector<GenerateRequest> requests);
  int64_t enqueue(Job job, size_t num_requests);
  void generate(int64_t tag, GenerateRequest request, int32_t n,
                const std::optional<TurnShape>& turn);
  void submit_waiting();
  void take(TokenEvent& event);
  bool is_finished(const Job& job) const;
  Done finish(int64_t job_id);

  LLM::State& llm;
  const TextModel& model;
  std::shared_ptr<Channel> channel = std::make_shared<Channel>();
  std::unordered_map<int64_t, Job> jobs;  // by the tag of their engine requests
  int64_t next_job_id = 0;
  std::deque<Waiting> waiting;  // waiting for room in the engine's queue
  int64_t num_open = 0;         // engine requests in flight
  std::deque<int64_t> finished;
  CallMetrics totals;  // since the pool was last empty
  std::vector<TokenEvent> events;
  SharedPrefix shared_prefix;  // of classifications
};

int64_t RequestPool::State::add(Job job, std::vector<GenerateRequest> requests) {
  for (GenerateRequest& request : requests) {
    model.engine.check(request);  // before anything is submitted
  }
  const size_t first = waiting.size();
  const int64_t job_id = enqueue(std::move(job), requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    waiting[first + i].request = std::move(requests[i]);
  }
  submit_waiting();
  return job_id;
}

int64_t RequestPool::State::enqueue(Job job, size_t num_requests) {
  if (jobs.empty()) totals = {};
  const int64_t job_id = next_job_id++;
  job.num_unsubmitted = num_requests;
  jobs.emplace(job_id, std::move(job));
  for (size_t i = 0; i < num_requests; ++i) {
    waiting.push_back({.job_id = job_id, .index = i, .request = {}});
  }
  return job_id;
}

void RequestPool::State::submit_waiting() {
  while (!waiting.empty()) {
    Waiting& next = waiting.front();
    Job& job = jobs.at(next.job_id);
    const auto now = Clock::now();
    if (!next.request) next.request = job.decisions->request(next.index);
    const auto id = model.engine.submit(*next.request, channel, next.job_id);
    if (!id) return;
    job.ids.push_back(*id);
    job.submitted.push_back(now);
    --job.num_unsubmitted;
    num_open += next.request->n;
    waiting.pop_front();
  }
}

bool RequestPool::State::is_finished(const Job& job) const {
  if (job.num_unsubmitted > 0) return false;
  if (job.classification) return job.classification->finished();
  if (job.decisions) return job.decisions->finished();
  if (job.scored) return !job.scored->empty() || job.error;
  if (job.embedding) return job.embedded || job.error;
  if (job.pairs) return job.pairs->num_ended == job.pairs->results.size();
  for (const CompletionBuilder& choice : job.choices) {
    if (!choice.finished()) return false;
  }
  return true;
}

void RequestPool::State::take(TokenEvent& event) {
  Job& job = jobs.at(event.tag);
  if (event.ending) {
    --num_open;
    const auto submitted = job.submitted[job.index_of(event.request)];
    job.metrics.add(event.ending->stats, submitted);
    totals.add(event.ending->stats, submitted);
  }
  if (job.classification || job.decisions || job.pairs) {
    const size_t index = job.index_of(event.request);
    if (job.classification) {
      job.classification->add(index, event);
    } else if (job.decisions) {
      job.decisions->add(index, event);
    } else {
      job.pairs->add(index, event);
      if (!job.error) job.error = failure_of(event);
    }
  } else if (job.scored) {
    if (event.prompt) *job.scored = describe(model, event.prompt->scored);
    job.error = failure_of(event);
  } else if (job.embedding) {
    job.error = failure_of(event);
    if (event.prompt && !job.error) {
      job.embedded = embedding_of(model, event, *job.embedding);
    }
  } else {
    CompletionBuilder& choice = job.choices[static_cast<size_t>(event.choice)];
    choice.add(event);
    if (choice.finished() && choice.error() && !job.error) job.error = choice.error();
  }
  if (event.ending && is_finished(job)) finished.push_back(event.tag);
}

RequestPool::Done RequestPool::State::finish(int64_t job_id) {
  auto node = jobs.extract(job_id);
  Job& job = node.mapped();
  Done done{.tag = job.tag, .result = ErrorInfo{}};
  int64_t cached_tokens = 0;
  if (job.classification) {
    ClassifyJob& classification = *job.classification;
    cached_tokens = classification.cached_tokens();
    if (classification.hold_index()) model.engine.release(job.ids[*classification.hold_index()]);
    job.error = classification.error();
    try {
      if (!job.error) done.result = classification.result();
    } catch (const Error& error) {
      job.error = ErrorInfo{.code = error.code(), .message = error.what()};
    }
  } else if (job.decisions) {
    for (const size_t index : job.decisions->hold_indices()) model.engine.release(job.ids[index]);
    job.error = job.decisions->error();
    if (!job.error) {
      Decisions decisions = job.decisions->result();
      cached_tokens = decisions.usage.cached_tokens;
      done.result = std::move(decisions);
    }
  } else if (job.scored) {
    done.result = std::move(*job.scored);
  } else if (job.pairs) {
    cached_tokens = job.pairs->usage.cached_tokens;
    if (!job.error) done.result = job.pairs->finish();
  } else if (job.embedded) {
    cached_tokens = job.embedded->usage.cached_tokens;
    done.result = std::move(*job.embedded);
  } else {
    std::vector<Completion> completions;
    if (!job.choices.empty()) cached_tokens = job.choices.front().stats().cached_tokens;
    for (CompletionBuilder& choice : job.choices) {
      completions.push_back(choice.take());
      completions.back().prompt_logprobs = completions.front().prompt_logprobs;
    }
    done.result = std::move(completions);
  }
  if (job.error) done.result = *job.error;
  job.metrics.add_prompt(job.prompt_tokens, cached_tokens);
  totals.add_prompt(job.prompt_tokens, cached_tokens);
  llm.record(totals);
  done.metrics = job.metrics.metrics();
  done.metrics.peak_memory_bytes = llm.metrics().peak_memory_bytes;
  return done;
}

RequestPool::RequestPool(LLM& llm) : RequestPool(*LLM::Call(llm)) {}
RequestPool::RequestPool(LLM::State& llm) : state_(std::make_unique<State>(llm)) {}

RequestPool::~RequestPool() {
  if (state_->llm.model == nullptr) return;
  for (const auto& [job_id, job] : state_->jobs) {
    for (const RequestId id : job.ids) {
      state_->model.engine.cancel(id);
      state_->model.engine.release(id);
    }
  }
}

void RequestPool::generate(int64_t tag, const Prompt& prompt, const GenerateOptions& options,
                           int32_t n) {
  state_->generate(tag, make_request(state_->model, prompt, options), n, {});
}

void RequestPool::State::generate(int64_t tag, GenerateRequest request, int32_t n,
                                  const std::optional<TurnShape>& turn) {
  request.n = n;
  Job job{.tag = tag, .prompt_tokens = static_cast<int64_t>(request.prompt.size())};
  for (int32_t k = 0; k < n; ++k) {
    CompletionShape shape = chat_completion_shape(request, turn);
    shape.seed += static_cast<uint64_t>(k);
    job.choices.emplace_back(model, std::move(shape));
  }
  std::vector<GenerateRequest> requests;
  requests.push_back(std::move(request));
  add(std::move(job), std::move(requests));
}

void RequestPool::chat(int64_t tag, const ChatInput& input, const GenerateOptions& options,
                       int32_t n, const TurnRequest& asked) {
  GenerateOptions of_chat = options;
  ChatTurn turn = prepare_chat_turn(state_->model, input, asked, of_chat);
  const std::optional<TurnShape> shape = turn.shape;
  state_->generate(tag, make_chat_request(state_->model, std::move(turn), of_chat), n, shape);
}

void RequestPool::classify(int64_t tag, const Prompt& prompt, const ClassifyOptions& options) {
  Job job{.tag = tag};
  job.classification.emplace(state_->model, prompt, options);
  job.prompt_tokens = job.classification->prompt_tokens();
  state_->shared_prefix.see(job.classification->prompt(),
                            prefix_scope(state_->model, options.sampling),
                            find_adapter(state_->model, options.sampling.lora));
  auto requests = job.classification->take_requests();
  state_->add(std::move(job), std::move(requests));
}

void RequestPool::decide(int64_t tag, const std::string& input,
                         std::span<const DecisionQuestion> questions,
                         const DecideOptions& options) {
  Job job{.tag = tag};
  job.decisions.emplace(state_->model, input, questions, options);
  job.prompt_tokens = job.decisions->prompt_tokens();
  const size_t num_requests = job.decisions->num_requests();
  state_->enqueue(std::move(job), num_requests);
  state_->submit_waiting();
}

void RequestPool::score(int64_t tag, const Prompt& prompt, const ScoreOptions& options) {
  std::vector<GenerateRequest> requests;
  requests.push_back(make_score_request(state_->model, prompt, options));
  Job job{.tag = tag, .prompt_tokens = static_cast<int64_t>(requests[0].prompt.size())};
  job.scored.emplace();
  state_->add(std::move(job), std::move(requests));
}

void RequestPool::embed(int64_t tag, const Prompt& prompt, const EmbedOptions& options) {
  std::vector<GenerateRequest> requests;
  requests.push_back(make_embed_request(state_->model, prompt, options));
  Job job{.tag = tag, .prompt_tokens = static_cast<int64_t>(requests[0].prompt.size())};
  job.embedding = options;
  state_->add(std::move(job), std::move(requests));
}

void RequestPool::score_pairs(int64_t tag, std::span<const TextPair> pairs,
                              const PairOptions& options) {
  Job job{.tag = tag};
  job.pairs.emplace(PairJob{.scoring = PairScoring(state_->model, pairs, options)});
  std::vector<GenerateRequest> requests = job.pairs->scoring.take_requests();
  job.pairs->results.resize(requests.size());
  for (const GenerateRequest& request : requests) job.prompt_tokens += std::ssize(request.prompt);
  state_->add(std::move(job), std::move(requests));
}

std::optional<RequestPool::Done> RequestPool::next() {
  State& state = *state_;
  while (state.finished.empty()) {
    if (state.jobs.empty()) return std::nullopt;
    if (state.num_open == 0) {  // other users fill the engine's queue
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      state.submit_waiting();
      continue;
    }
    state.channel->wait(state.events);
    for (TokenEvent& event : state.events) state.take(event);
    state.submit_waiting();
  }
  const int64_t job_id = state.finished.front();
  state.finished.pop_front();
  return state.finish(job_id);
}

int64_t RequestPool::in_flight() const { return static_cast<int64_t>(state_->jobs.size()); }

}  // namespace paceline
