#include "kernels/cuda/cuda_row_sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/sampling_math.h"
#include "kernels/cuda/code/adjust_rows.h"
#include "kernels/cuda/code/draw_rows.h"
#include "kernels/cuda/code/row_results.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/operand_views.h"

namespace paceline::cuda {
namespace {

static_assert(static_cast<int>(DrawOutcome::all_forbidden) ==
              static_cast<int>(SampleStatus::all_forbidden));
static_assert(sizeof(TokenScore) == sizeof(TokenLogprob) && sizeof(TokenCount) == 8);
static_assert(sizeof(TokenBias) == sizeof(std::pair<int32_t, float>));

constexpr size_t kAlignment = 16;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

DrawRow settings_of(const RowDraw& draw) {
  DrawRow row{draw};  // its numbers
  row.position = draw.position;
  row.forced = draw.forced.value_or(-1);
  row.is_active = 1;
  row.wants_logprob = draw.wants_logprob ? uint8_t{1} : uint8_t{0};
  return row;
}

void launch_draws(CudaDevice& device, const DrawLaunch& launch_of) {
  const auto& [num_rows, width, rows, logits, adjusted, sums, drawn] = launch_of;
  const Grid grid{static_cast<uint32_t>(num_rows)};
  if (adjusted.first != nullptr) {
    const AdjustParams params{rows, logits, adjusted, width};
    launch<MaskRows>(device, element_grid(num_rows, width), params);
    launch<PenaliseRows>(device, grid, params);
  }
  launch<DrawRows>(device, grid, {rows, logits, {adjusted.first, adjusted.stride}, width, drawn});
  if (sums == nullptr) return;
  launch<LogSumExp>(device, grid, {logits, width, sums});
  launch<ScoreRows>(device, grid, {rows, logits, width, sums, drawn});
}

// Where the span will stand behind the rows: an offset, until the operands have their place.
template <class T>
const T* CudaRowSampler::append(std::span<const T> span) {
  if (span.empty()) return nullptr;
  const size_t offset = aligned(bytes_.size());
  bytes_.resize(offset + span.size_bytes());
  std::memcpy(bytes_.data() + offset, span.data(), span.size_bytes());
  return reinterpret_cast<const T*>(offset);
}

void CudaRowSampler::append_row(const RowDraw& draw, Pending& pending) {
  DrawRow row = settings_of(draw);
  row.num_history = static_cast<uint32_t>(draw.history.size());
  row.num_biases = static_cast<uint32_t>(draw.logit_bias.size());
  row.num_allowed_words = static_cast<uint32_t>(draw.allowed.size());
  pending.is_adjusted = changes_logits(row);
  if (pending.is_adjusted) {
    if (!penalises(row)) row.num_history = 0;
    row.history = const_cast<TokenCount*>(append(draw.history.first(row.num_history)));
    row.biases = reinterpret_cast<const TokenBias*>(append(draw.logit_bias));
    row.allowed = append(draw.allowed);
  }
  pending.wants_logprob = draw.wants_logprob;
  if (draw.wants_logprob) {
    row.num_listed = static_cast<uint32_t>(draw.logprob_token_ids.size());
    row.listed = append(draw.logprob_token_ids);
    pending.num_scored =
        row.num_listed > 0 ? row.num_listed : static_cast<uint32_t>(row.num_top_logprobs);
  }
  rows_.push_back(row);
}

void CudaRowSampler::begin(std::span<const RowDraw> draws, int64_t vocab_size) {
  if (vocab_size > kMaxWeights) {
    throw Error(ErrorCode::unsupported, fmt::format("vocab_size: found {}, sampling takes at most "
                                                    "{}",
                                                    vocab_size, kMaxWeights));
  }
  vocab_size_ = vocab_size;
  const size_t rows_bytes = aligned(draws.size() * sizeof(DrawRow));
  bytes_.assign(rows_bytes, std::byte{0});
  rows_.clear();
  pending_.assign(draws.size(), {});
  size_t num_scored = 0;
  for (size_t i = 0; i < draws.size(); ++i) {
    PL_CHECK(draws[i].num_top_logprobs >= 0 &&
                 draws[i].num_top_logprobs <= static_cast<int32_t>(kMostListed),
             "more top log-probabilities than a block lists");
    append_row(draws[i], pending_[i]);
    pending_[i].first_scored = num_scored;
    num_scored += pending_[i].num_scored;
  }
  result_bytes_.resize(draws.size() * sizeof(DrawnToken) + num_scored * sizeof(TokenScore));
  drawn_ = static_cast<DrawnToken*>(results_.reserve(result_bytes_.size()));
  auto* const scored = reinterpret_cast<TokenScore*>(drawn_ + draws.size());
  sums_.reserve_as<float>(std::ssize(draws));
  auto* const base = static_cast<std::byte*>(operands_.reserve(bytes_.size()));
  const auto place = [base]<class T>(T*& pointer) {
    if (pointer == nullptr) return;
    pointer = reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(base) +
                                   reinterpret_cast<uintptr_t>(pointer));
  };
  for (size_t i = 0; i < rows_.size(); ++i) {
    DrawRow& row = rows_[i];
    place(row.history);
    place(row.biases);
    place(row.allowed);
    place(row.listed);
    row.scored = scored + pending_[i].first_scored;
  }
  if (rows_.empty()) return;
  std::memcpy(bytes_.data(), rows_.data(), rows_.size() * sizeof(DrawRow));
  device_.copy_to_device(base, bytes_.data(), bytes_.size());
}

void CudaRowSampler::draw(int64_t first, const Tensor& logits) {
  const int64_t num_rows = logits.size(0), end = first + num_rows;
  PL_CHECK(logits.size(1) == vocab_size_ && end <= std::ssize(pending_), "rows of other draws");
  const auto rows =
      std::span(pending_).subspan(static_cast<size_t>(first), static_cast<size_t>(num_rows));
  DrawLaunch launch{.num_rows = num_rows,
                    .width = vocab_size_,
                    .rows = static_cast<const DrawRow*>(operands_.reserve(0)) + first,
                    .logits = const_rows_of(logits),
                    .drawn = drawn_ + first};
  if (std::ranges::any_of(rows, &Pending::is_adjusted)) {
    launch.adjusted = {adjusted_.reserve_as<float>(num_rows * vocab_size_), vocab_size_};
  }
  if (std::ranges::any_of(rows, &Pending::wants_logprob)) {
    launch.log_sum_exp = static_cast<float*>(sums_.reserve(0)) + first;
  }
  launch_draws(device_, launch);
}

void CudaRowSampler::finish(std::span<Sample> samples) {
  PL_CHECK(samples.size() == pending_.size(), "a sample for each draw");
  device_.copy_from_device(result_bytes_.data(), drawn_, result_bytes_.size());
  const std::byte* const scored = result_bytes_.data() + samples.size() * sizeof(DrawnToken);
  for (size_t i = 0; i < samples.size(); ++i) {
    DrawnToken drawn;
    std::memcpy(&drawn, result_bytes_.data() + i * sizeof(drawn), sizeof(drawn));
    samples[i] = {.status = static_cast<SampleStatus>(drawn.outcome),
                  .id = drawn.id,
                  .logprob = drawn.logprob};
    samples[i].top_logprobs.resize(drawn.num_scored);
    if (drawn.num_scored == 0) continue;
    std::memcpy(samples[i].top_logprobs.data(),
                scored + pending_[i].first_scored * sizeof(TokenScore),
                drawn.num_scored * sizeof(TokenScore));
  }
}

}  // namespace paceline::cuda
