// The lines of a trace: what each says, and its fields in the order of the file. TraceWriter writes
// them and `paceline trace` reads them by the same lists. A step's line is a StepRecord.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/number_range.h"
#include "engine/step_record.h"
#include "sampling/sampling_options.h"

namespace paceline {

inline constexpr NumberRange kAnyInteger{};
inline constexpr NumberRange kNotNegative{.min = 0};
// Far more than there can be, and sums of them stay within 64 bits.
inline constexpr NumberRange kCount{.min = 0, .max = 1'000'000'000'000};
inline constexpr NumberRange kPositive{.min = 1, .max = kCount.max};
inline constexpr NumberRange kClockTime{.min = 0, .max = 1'000'000'000'000'000};  // microseconds
inline constexpr NumberRange kAnyTokenId{.min = 0, .max = std::numeric_limits<int32_t>::max()};

// A cache group's pool.
struct TraceGroup {
  int64_t window = 0;  // tokens that its layers see; 0: all
  int64_t blocks = 0;  // size of the pool
};

struct TraceStart {
  std::string model;
  int64_t block_size = 0;  // tokens
  std::vector<TraceGroup> groups;
  int64_t max_num_seqs = 0;
  int64_t max_batched_tokens = 0;
};

struct TraceBias {
  TokenId id = 0;
  float bias = 0;
};

// One sequence: one choice of what a client asked for. All that its output depends on.
struct TraceRequest {
  int64_t id = 0;
  int64_t step = 0;  // the one that took it in
  std::vector<TokenId> prompt_ids;
  int64_t prompt_tokens = 0;
  int64_t max_tokens = 0;
  SamplingOptions sampling;                // its numbers and its seed
  std::vector<TraceBias> logit_bias;       // finite ones
  std::vector<TokenId> never;              // those with a bias of minus infinity
  std::vector<TokenId> allowed_token_ids;  // none: all
  std::vector<std::vector<TokenId>> banned;
  std::vector<TokenId> not_first;
  std::string sampler_order;  // empty or mlx
  std::vector<TokenId> stop_token_ids;
  std::vector<std::string> stop;
  std::vector<TokenId> eos_token_ids;
  bool ignore_eos = false;
  int64_t priority = 0;
  int64_t min_tokens = 0;
  bool skip_special_tokens = true;
  bool is_constrained = false;  // the constraint itself isn't in the trace
};

struct TraceCancel {
  int64_t id = 0;
  int64_t step = 0;
};

// visit_fields(line, visit) calls, for each field of a line,
//   visit(name, member)           text, a boolean, a seed, or an array
//   visit(name, member, range)    an integer, or an array of integers
//   visit.objects(name, member)   an array of objects with fields of their own
//   visit.optional(name, member, usual[, range])   a field that is left out when it is as usual
//   visit.number(number, member)  a number of SamplingOptions
// An array of structs is one of arrays: visit_parts(element, visit) calls visit(part[, range]).
// The line is const where it is written.
template <class T, class Line>
concept ConstOrNot = std::same_as<std::remove_const_t<T>, Line>;

template <ConstOrNot<TraceGroup> Group, class Visit>
void visit_fields(Group& group, Visit& visit) {
  visit("window", group.window, kCount);
  visit("blocks", group.blocks, kPositive);
}

template <ConstOrNot<TraceStart> Start, class Visit>
void visit_fields(Start& start, Visit& visit) {
  visit("model", start.model);
  visit("block_size", start.block_size, kPositive);
  visit.objects("groups", start.groups);
  visit("max_num_seqs", start.max_num_seqs, kPositive);
  visit("max_batched_tokens", start.max_batched_tokens, kPositive);
}

template <ConstOrNot<TraceRequest> Request, class Visit>
void visit_fields(Request& request, Visit& visit) {
  visit("id", request.id, kAnyInteger);
  visit("step", request.step, kCount);
  visit("prompt_ids", request.prompt_ids);
  visit("prompt_tokens", request.prompt_tokens, kCount);
  visit("max_tokens", request.max_tokens, kNotNegative);
  for (const SamplingNumber& number : kSamplingNumbers) {
    std::visit([&](auto member) { visit.number(number, request.sampling.*member); }, number.member);
  }
  visit("logit_bias", request.logit_bias);
  visit.optional("never", request.never, {});
  visit.optional("allowed_token_ids", request.allowed_token_ids, {});
  visit.optional("banned", request.banned, {});
  visit.optional("not_first", request.not_first, {});
  visit.optional("sampler_order", request.sampler_order, {});
  visit("seed", request.sampling.seed);
  visit("stop_token_ids", request.stop_token_ids);
  visit("stop", request.stop);
  visit("eos_token_ids", request.eos_token_ids);
  visit("ignore_eos", request.ignore_eos);
  visit("priority", request.priority, kAnyInteger);
  visit.optional("min_tokens", request.min_tokens, 0, kCount);
  visit.optional("skip_special_tokens", request.skip_special_tokens, true);
  visit.optional("is_constrained", request.is_constrained, false);
}

template <ConstOrNot<TraceCancel> Cancel, class Visit>
void visit_fields(Cancel& cancel, Visit& visit) {
  visit("id", cancel.id, kAnyInteger);
  visit("step", cancel.step, kCount);
}

template <ConstOrNot<StepRecord> Step, class Visit>
void visit_fields(Step& step, Visit& visit) {
  visit("step", step.step, kCount);
  visit("at_us", step.at_us, kClockTime);
  visit("plan_us", step.plan_us, kCount);
  visit.optional("draft_us", step.draft_us, 0, kCount);
  visit("forward_us", step.forward_us, kCount);
  visit("total_us", step.total_us, kCount);
  visit("num_rows", step.num_rows, kCount);
  visit("num_waiting", step.num_waiting, kCount);
  visit("free_blocks", step.free_blocks, kCount);
  visit("cached_blocks", step.cached_blocks, kCount);
  visit("admitted", step.admitted);
  visit("preempted", step.preempted, kAnyInteger);
  visit("slices", step.slices);
  visit.optional("drafts", step.drafts, {});
  visit("blocks", step.blocks);
  visit("tokens", step.tokens);
  visit("finished", step.finished);
}

template <ConstOrNot<TraceBias> Bias, class Visit>
void visit_parts(Bias& bias, Visit& visit) {
  visit(bias.id, kAnyTokenId);
  visit(bias.bias);
}

template <ConstOrNot<StepRecord::Slice> Slice, class Visit>
void visit_parts(Slice& slice, Visit& visit) {
  visit(slice.id, kAnyInteger);
  visit(slice.first, kCount);
  visit(slice.count, kPositive);
}

template <ConstOrNot<StepRecord::Draft> Draft, class Visit>
void visit_parts(Draft& draft, Visit& visit) {
  visit(draft.id, kAnyInteger);
  visit(draft.drafted, kPositive);
  visit(draft.accepted, kCount);
}

template <ConstOrNot<StepRecord::Admission> Admission, class Visit>
void visit_parts(Admission& admission, Visit& visit) {
  visit(admission.id, kAnyInteger);
  visit(admission.cached_tokens, kCount);
}

template <ConstOrNot<StepRecord::Blocks> Blocks, class Visit>
void visit_parts(Blocks& blocks, Visit& visit) {
  visit(blocks.id, kAnyInteger);
  visit(blocks.count, kCount);
}

template <ConstOrNot<StepRecord::DrawnToken> Token, class Visit>
void visit_parts(Token& drawn, Visit& visit) {
  visit(drawn.id, kAnyInteger);
  visit(drawn.token, kAnyTokenId);
}

template <ConstOrNot<StepRecord::IdAndReason> Finished, class Visit>
void visit_parts(Finished& finished, Visit& visit) {
  visit(finished.id, kAnyInteger);
  visit(finished.reason);
}

}  // namespace paceline
