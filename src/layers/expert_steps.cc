#include "layers/expert_steps.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "kernels/backend.h"

namespace paceline {
namespace {

// Slots that are computed together when a batch has fewer rows.
constexpr int64_t kLeastSlots = 256;

int64_t most_slots(int64_t rows) { return std::max(rows, kLeastSlots); }

// The rows of a batch's slots.
struct SlotScratch {
  Tensor inputs;   // [slots, hidden]
  Tensor gate_up;  // [slots, up_width]
  Tensor outputs;  // [slots, hidden]

  SlotScratch(Scratch& scratch, int64_t slots, int64_t hidden_size, int64_t up_width)
      : inputs(scratch.take_rows(slots, hidden_size)),
        gate_up(scratch.take_rows(slots, up_width)),
        outputs(scratch.take_rows(slots, hidden_size)) {}
};

// Neighbouring experts of one width, whose products are computed together.
struct ExpertBatch {
  std::span<const RowsOfExpert> groups;
  int64_t first_slot = 0;
  int64_t num_slots = 0;
};

class ExpertSteps {
 public:
  ExpertSteps(Backend& backend, std::span<const GatedMlp> experts, const SortedExperts& sorted,
              const ListExpertSegments& list_segments)
      : backend_(backend), experts_(experts), sorted_(sorted), list_segments_(list_segments) {}

  // From the group `first` on.
  ExpertBatch next_batch(size_t first, int64_t most) const {
    const std::span<const RowsOfExpert> all = sorted_.groups().subspan(first);
    const int64_t width = width_of(all.front());
    ExpertBatch batch{.first_slot = all.front().first_row};
    size_t count = 0;
    for (; count < all.size(); ++count) {
      const int64_t rows = std::ssize(all[count].batch_rows);
      if (count > 0 && (batch.num_slots + rows > most || width_of(all[count]) != width)) break;
      batch.num_slots += rows;
    }
    batch.groups = all.first(count);
    return batch;
  }

  // sums[row] += weight * the expert's output, for all slots of the batch.
  void add(const ExpertBatch& batch, const Tensor& x, Scratch& scratch, const Tensor& sums) {
    const Scratch::Frame frame(scratch);
    const auto first = static_cast<size_t>(batch.first_slot),
               count = static_cast<size_t>(batch.num_slots);
    const std::span<const int32_t> rows = sorted_.batch_rows().subspan(first, count);
    const int64_t width = width_of(batch.groups.front());
    const GatedMlp& first_expert = experts_[batch.groups.front().expert];
    const auto& [inputs, gate_up, outputs] =
        SlotScratch(scratch, batch.num_slots, x.size(1), first_expert.up_width());
    backend_.gather_rows(x, rows, inputs);
    multiply(batch, BlockProduct::gate_up, inputs, gate_up);
    const Tensor gate = gate_up.slice(1, 0, width);
    first_expert.activate(backend_, gate_up, gate);
    multiply(batch, BlockProduct::down, gate, outputs);
    backend_.add_scaled_rows(outputs, rows, sorted_.weights().subspan(first, count), sums);
  }

 private:
  int64_t width_of(const RowsOfExpert& rows) const {
    return experts_[rows.expert].config().intermediate_size;
  }

  void multiply(const ExpertBatch& batch, BlockProduct product, const Tensor& x,
                const Tensor& out) {
    segments_.clear();
    for (const RowsOfExpert& group : batch.groups) {
      const GatedMlp& expert = experts_[group.expert];
      const int64_t first = group.first_row - batch.first_slot;
      const int64_t end = first + std::ssize(group.batch_rows);
      const Linear& linear = product == BlockProduct::down ? expert.down() : expert.gate_up();
      linear.forward(backend_, x.slice(0, first, end), out.slice(0, first, end));
      list_segments_(product,
                     {.expert = group.expert, .first_row = first, .batch_rows = group.batch_rows},
                     segments_);
    }
    if (!segments_.empty()) backend_.add_lora(x, segments_, out);
  }

  Backend& backend_;
  std::span<const GatedMlp> experts_;
  const SortedExperts& sorted_;
  const ListExpertSegments& list_segments_;
  std::vector<LoraSegment> segments_;
};

}  // namespace

SortedExperts::SortedExperts(const HostRouting& routing, size_t num_experts) {
  const std::span<const int32_t> experts = routing.experts;
  std::vector<size_t> begins(num_experts + 1, 0);
  for (const int32_t expert : experts) {
    PL_CHECK(expert >= 0 && static_cast<size_t>(expert) < num_experts, "no such expert");
    ++begins[static_cast<size_t>(expert) + 1];
  }
  for (size_t i = 0; i < num_experts; ++i) begins[i + 1] += begins[i];
  rows_.resize(experts.size());
  weights_.resize(experts.size());
  places_.resize(experts.size());
  std::vector<size_t> next(begins.begin(), begins.end() - 1);
  for (size_t place = 0; place < experts.size(); ++place) {
    const size_t at = next[static_cast<size_t>(experts[place])]++;
    rows_[at] = static_cast<int32_t>(place / static_cast<size_t>(routing.num_slots));
    weights_[at] = routing.weights[place];
    places_[at] = place;
  }
  for (size_t i = 0; i < num_experts; ++i) {
    const size_t count = begins[i + 1] - begins[i];
    if (count == 0) continue;
    groups_.push_back({.expert = i,
                       .first_row = static_cast<int64_t>(begins[i]),
                       .batch_rows = std::span(rows_).subspan(begins[i], count)});
  }
}

void mix_adapted_experts(Backend& backend, std::span<const GatedMlp> experts,
                         const Routing& routing, const ListExpertSegments& list_segments,
                         const Tensor& x, Scratch& scratch, const Tensor& out) {
  const Scratch::Frame frame(scratch);
  const int64_t rows = x.size(0);
  const Tensor sums = scratch.take_rows(rows, out.size(1));  // `out` may be x
  backend.clear(sums);
  const SortedExperts sorted(backend.read_routing(routing), experts.size());
  ExpertSteps steps(backend, experts, sorted, list_segments);
  for (size_t first = 0; first < sorted.groups().size();) {
    const ExpertBatch batch = steps.next_batch(first, most_slots(rows));
    steps.add(batch, x, scratch, sums);
    first += batch.groups.size();
  }
  std::vector<int32_t> all_rows(static_cast<size_t>(rows));
  std::iota(all_rows.begin(), all_rows.end(), 0);
  backend.gather_rows(sums, all_rows, out);
}

void take_expert_steps(Scratch& scratch, const MixtureConfig& config, int64_t hidden_size,
                       int64_t rows) {
  scratch.take_rows(rows, hidden_size);
  const int64_t width = std::max(config.expert_size, config.shared_size);
  SlotScratch(scratch, most_slots(rows), hidden_size, 2 * width);
}

}  // namespace paceline
