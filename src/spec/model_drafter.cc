#include "spec/model_drafter.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/state_chunk.h"

namespace paceline {

struct ModelDrafter::State : DraftState {
  explicit State(StateCache& cache) : blocks(cache) {}

  // How many of its keys and values are those of `tokens`.
  int64_t num_valid(std::span<const int32_t> tokens) const {
    int64_t valid = std::min(num_computed, drafted_begin);
    while (valid < std::min(num_computed, std::ssize(tokens)) &&
           drafted[static_cast<size_t>(valid - drafted_begin)] ==
               tokens[static_cast<size_t>(valid)]) {
      ++valid;
    }
    return valid;
  }

  SequenceBlocks blocks;
  int64_t num_computed = 0;   // tokens whose keys and values are in the cache
  int64_t drafted_begin = 0;  // tokens from here on are those of the last draft
  std::vector<int32_t> drafted;
};

struct ModelDrafter::Job {
  const DraftRequest* request = nullptr;
  State* state = nullptr;
  int64_t most = 0;  // tokens to propose
  bool is_done = false;
  // Of the forward that is being made.
  int64_t first_row = 0;
  int64_t num_rows = 0;
};

namespace {

// Takes drafted tokens back out of the histories, whatever happens.
class HistoryGuard {
 public:
  explicit HistoryGuard(std::span<const DraftRequest> requests) : requests_(requests) {
    for (const DraftRequest& one : requests) lengths_.push_back(one.history->output().size());
  }
  ~HistoryGuard() {
    for (size_t i = 0; i < requests_.size(); ++i) {
      TokenHistory& history = *requests_[i].history;
      while (history.output().size() > lengths_[i]) history.remove_last_output();
    }
  }
  HistoryGuard(const HistoryGuard&) = delete;
  HistoryGuard& operator=(const HistoryGuard&) = delete;

 private:
  std::span<const DraftRequest> requests_;
  std::vector<size_t> lengths_;
};

}  // namespace

ModelDrafter::ModelDrafter(Runner& runner, StateCache& cache, Memory& memory,
                           const ModelDrafterLimits& limits)
    : runner_(runner),
      cache_(cache),
      limits_(limits),
      sampler_(memory, limits.vocab_size),
      builder_(cache) {
  if (runner.vocab_size() < limits.vocab_size) {
    row_.assign(static_cast<size_t>(limits.vocab_size), -std::numeric_limits<float>::infinity());
  }
}

ModelDrafter::~ModelDrafter() = default;

std::unique_ptr<DraftState> ModelDrafter::begin(std::span<const int32_t> /*prompt*/,
                                                std::span<const int32_t> /*prediction*/) {
  return std::make_unique<State>(cache_);
}

int64_t ModelDrafter::prospects(DraftState& /*state*/, std::span<const int32_t> tokens,
                                int64_t most) {
  const int64_t length = std::ssize(tokens);
  return std::clamp<int64_t>(limits_.max_length - length, 0, most_drafted(length, most));
}

// States can take back rows of the chunk that is open: the last row that a draft computes, that of
// its last token but one, may not end it.
int64_t ModelDrafter::most_drafted(int64_t length, int64_t most) const {
  return cache_.has_states() ? std::min(most, kStateChunk - length % kStateChunk) : most;
}

// As many of `valid` rows as its states can go on from: all, or none where they went on beyond a
// chunk that must be computed again.
int64_t ModelDrafter::resumable(const State& state, int64_t valid) const {
  const bool is_open = valid >= state.num_computed / kStateChunk * kStateChunk;
  return is_open || !cache_.has_states() ? valid : 0;
}

void ModelDrafter::propose(std::span<const DraftRequest> requests) {
  const HistoryGuard guard(requests);
  jobs_.clear();
  for (const DraftRequest& request : requests) start(request);
  while (true) {
    builder_.clear();
    cache_.clear_copies();
    drawing_.clear();
    bool any = false;
    for (Job& job : jobs_) any = add_rows(job) || any;
    if (!any) return;
    builder_.add_copies();
    runner_.run(builder_.batch(), {});
    draw_all();
  }
}

// Gives back what the last draft left in the cache and was not drawn.
void ModelDrafter::start(const DraftRequest& request) {
  auto& state = static_cast<State&>(*request.state);
  const int64_t length = std::ssize(request.tokens);
  // The last token's row is computed anew: the first proposal is drawn from it.
  const int64_t valid = resumable(state, std::min(state.num_valid(request.tokens), length - 1));
  cache_.truncate(state.blocks, std::min(valid, state.blocks.length()));
  cache_.release_outside_window(state.blocks, valid);
  state.num_computed = valid;
  state.drafted_begin = length;
  state.drafted.clear();
  jobs_.push_back({.request = &request,
                   .state = &state,
                   .most = most_drafted(length, request.most),
                   .is_done = request.most <= 0 || length > limits_.max_length});
}

bool ModelDrafter::add_rows(Job& job) {
  job.first_row = job.num_rows = 0;
  if (job.is_done) return false;
  State& state = *job.state;
  const auto tokens = job.request->tokens;
  const int64_t room = limits_.max_rows - builder_.batch().num_rows();
  const int64_t unread = std::ssize(tokens) - state.num_computed;
  // Either tokens of the sequence, or the last drafted one.
  const int64_t count = std::min(std::max<int64_t>(unread, 1), room);
  const int64_t end = state.num_computed + count;
  job.is_done = count <= 0 || end > limits_.max_length;
  if (job.is_done) return false;
  const std::span<const int32_t> rows =
      unread > 0
          ? tokens.subspan(static_cast<size_t>(state.num_computed), static_cast<size_t>(count))
          : std::span<const int32_t>(state.drafted).last(1);
  const auto is_unknown = [this](int32_t id) { return id >= runner_.vocab_size(); };
  job.is_done = std::any_of(rows.begin(), rows.end(), is_unknown) ||
                cache_.reserve(state.blocks, end, end).has_value();
  if (job.is_done) return false;
  job.first_row = builder_.add({.tokens = rows,
                                .first_position = state.num_computed,
                                .blocks = state.blocks,
                                .stretched = runner_.stretched_length(job.request->most_tokens)});
  job.num_rows = count;
  state.num_computed = end;
  if (unread > count) {
    job.is_done = true;  // it goes on reading in the next call
  } else {
    builder_.add_output(job.first_row + count - 1);
    drawing_.push_back(&job);
  }
  return true;
}

void ModelDrafter::draw_all() {
  const auto finite = runner_.finite_rows();
  for (Job& job : jobs_) {
    const auto rows =
        finite.subspan(static_cast<size_t>(job.first_row), static_cast<size_t>(job.num_rows));
    if (std::find(rows.begin(), rows.end(), 0) == rows.end()) continue;
    job.request->draft->failed = job.is_done = true;
  }
  const auto width = static_cast<size_t>(runner_.vocab_size());
  const auto num_rows = static_cast<int64_t>(drawing_.size());
  for (int64_t begin = 0; begin < num_rows; begin += runner_.max_logits_rows()) {
    const int64_t count = std::min(runner_.max_logits_rows(), num_rows - begin);
    const auto logits = runner_.logits(begin, count);
    for (int64_t i = 0; i < count; ++i) {
      Job& job = *drawing_[static_cast<size_t>(begin + i)];
      if (!job.is_done) draw(job, logits.subspan(static_cast<size_t>(i) * width, width));
    }
  }
}

std::span<const float> ModelDrafter::common_logits(std::span<const float> row) {
  if (row_.empty()) return row.first(static_cast<size_t>(limits_.vocab_size));
  std::copy(row.begin(), row.end(), row_.begin());
  return row_;
}

void ModelDrafter::draw(Job& job, std::span<const float> logits) {
  const DraftRequest& request = *job.request;
  State& state = *job.state;
  Draft& draft = *request.draft;
  LogitsRow row{.logits = common_logits(logits)};
  if (request.mask != nullptr) {
    row.allowed = request.mask->allowed();
    job.is_done = row.allowed.empty();
    if (job.is_done) return;
  }
  const int64_t position = state.num_computed;
  const Sample sample = sampler_.draw(row, *request.sampling, *request.history, position);
  if (sample.status != SampleStatus::ok) {
    draft.failed = sample.status == SampleStatus::nan_logits;
    job.is_done = true;
    return;
  }
  if (request.wants_distributions) {
    sampler_.distribution(row, *request.sampling, *request.history,
                          draft.distributions.emplace_back());
  }
  draft.tokens.push_back(sample.id);
  state.drafted.push_back(sample.id);
  if (request.mask != nullptr) request.mask->accept(sample.id);
  // Penalties see the draft as they will see the output.
  if (!request.history->tokens().empty()) request.history->add_output(sample.id);
  job.is_done = std::ssize(draft.tokens) >= job.most;
}

}  // namespace paceline
