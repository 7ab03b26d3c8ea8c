#include "cli/trace_totals.h"

#include <algorithm>
#include <unordered_map>

namespace paceline {
namespace {

// The state of a sequence so far.
struct Progress {
  int64_t num_tokens = 0;    // prompt and output
  int64_t num_computed = 0;  // at its highest: less after a preemption
  bool is_decoding = false;
};

class TimelineBuilder {
 public:
  explicit TimelineBuilder(const Trace& trace) : trace_(trace) {
    if (!trace.steps.empty()) origin_us_ = trace.steps.front().at_us;
    for (const StepRecord& step : trace.steps) {
      const int64_t begin = step.at_us - origin_us_;
      timeline_.steps.push_back({.step = step.step, .time = {begin, begin + step.total_us}});
      timeline_.duration_us = std::max(timeline_.duration_us, begin + step.total_us);
    }
    for (const TraceRequest& request : trace.requests) add_lane(request);
  }

  Timeline build() {
    for (index_ = 0; index_ < trace_.steps.size(); ++index_) add_step(trace_.steps[index_]);
    for (const TraceCancel& cancel : trace_.cancels) {
      end_lane(cancel.id, begin_of(cancel.step), FinishReason::cancelled);
    }
    return std::move(timeline_);
  }

 private:
  void add_lane(const TraceRequest& request) {
    lane_indices_.emplace(request.id, timeline_.lanes.size());
    Lane& added = timeline_.lanes.emplace_back();
    added.id = request.id;
    added.prompt_tokens = request.prompt_tokens;
    added.arrival_us = begin_of(request.step);
    progress_.push_back({.num_tokens = request.prompt_tokens});
  }

  // When a step began; for a missing step (nothing ran), when the next one did.
  int64_t begin_of(int64_t step) const {
    const auto found = std::lower_bound(
        timeline_.steps.begin(), timeline_.steps.end(), step,
        [](const StepTime& candidate, int64_t number) { return candidate.step < number; });
    return found == timeline_.steps.end() ? timeline_.duration_us : found->time.begin_us;
  }

  void add_step(const StepRecord& step) {
    const Interval time = timeline_.steps[index_].time;
    for (int64_t id : step.preempted) {
      lane(id).preemptions_us.push_back(time.begin_us);
      progress(id).is_decoding = false;
    }
    for (const StepRecord::Admission& one : step.admitted) {
      if (one.cached_tokens == 0) continue;
      lane(one.id).cache_hits.push_back({.at_us = time.begin_us, .tokens = one.cached_tokens});
      lane(one.id).cached_tokens += one.cached_tokens;
    }
    drafts_.clear();
    for (const StepRecord::Draft& draft : step.drafts) drafts_[draft.id] = draft;
    for (const StepRecord::Slice& slice : step.slices) add_slice(slice, time);
    for (const StepRecord::DrawnToken& token : step.tokens) add_token(token.id, time.end_us);
    for (const StepRecord::IdAndReason& one : step.finished) {
      // Cancellations take effect before the forward.
      end_lane(one.id, one.reason == FinishReason::cancelled ? time.begin_us : time.end_us,
               one.reason);
    }
  }

  void add_token(int64_t id, int64_t at_us) {
    Lane& drawn = lane(id);
    Progress& so_far = progress(id);
    if (!drawn.first_token_us) drawn.first_token_us = at_us;
    ++drawn.output_tokens;
    if (so_far.num_computed == 0) {  // a further choice, on the prompt that the first one computed
      so_far.num_computed = so_far.num_tokens;
      so_far.is_decoding = true;
    }
    ++so_far.num_tokens;
  }

  void add_slice(const StepRecord::Slice& slice, Interval time) {
    Progress& so_far = progress(slice.id);
    std::vector<LaneSpan>& spans = lane(slice.id).spans;
    StepTime& step = timeline_.steps[index_];
    SpanKind kind = slice.first < so_far.num_computed ? SpanKind::recompute : SpanKind::prefill;
    if (so_far.is_decoding) kind = SpanKind::decode;
    (so_far.is_decoding ? step.decode_rows : step.prefill_rows) += slice.count;
    const auto found = drafts_.find(slice.id);
    const StepRecord::Draft draft = found == drafts_.end() ? StepRecord::Draft{} : found->second;
    const int64_t num_rejected = draft.drafted - draft.accepted;
    step.accepted_rows += draft.accepted;
    step.rejected_rows += num_rejected;
    so_far.num_computed = std::max(so_far.num_computed, slice.first + slice.count - num_rejected);
    // A slice up to the last known token draws the next one: the sequence decodes from there on.
    so_far.is_decoding = so_far.is_decoding || slice.first + slice.count >= so_far.num_tokens;

    const bool continues = kind == SpanKind::decode && !spans.empty() &&
                           spans.back().kind == kind && spans.back().last_step + 1 == index_;
    if (!continues) spans.push_back({.kind = kind, .time = time, .tokens = 0, .last_step = index_});
    spans.back().time.end_us = time.end_us;
    spans.back().tokens += slice.count;
    spans.back().drafted += draft.drafted;
    spans.back().accepted += draft.accepted;
    lane(slice.id).drafted_tokens += draft.drafted;
    lane(slice.id).accepted_tokens += draft.accepted;
    spans.back().last_step = index_;
  }

  // The first end counts: a cancellation may come before or after a finish.
  void end_lane(int64_t id, int64_t at_us, FinishReason reason) {
    Lane& ended = lane(id);
    if (ended.end_us) return;
    ended.end_us = at_us;
    ended.finish_reason = finish_reason_name(reason);
  }

  Lane& lane(int64_t id) { return timeline_.lanes[lane_indices_.at(id)]; }
  Progress& progress(int64_t id) { return progress_[lane_indices_.at(id)]; }

  const Trace& trace_;
  Timeline timeline_;
  std::vector<Progress> progress_;  // parallel to the lanes
  std::unordered_map<int64_t, size_t> lane_indices_;
  std::unordered_map<int64_t, StepRecord::Draft> drafts_;  // of the step being added
  int64_t origin_us_ = 0;
  size_t index_ = 0;  // of the step being added
};

}  // namespace

Timeline make_timeline(const Trace& trace) { return TimelineBuilder(trace).build(); }

}  // namespace paceline
