#include "kernels/cuda/cuda_decode_slots.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/divide_up.h"
#include "base/error.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/operand_views.h"

namespace paceline::cuda {
namespace {

static_assert(static_cast<int>(DecodedToken::Status::ok) == kSlotDrawn);
static_assert(static_cast<int>(DecodedToken::Status::nan_logits) == kSlotNan);
static_assert(static_cast<int>(DecodedToken::Status::nothing_to_draw) == kSlotNothing);
static_assert(static_cast<int>(DecodedToken::Status::bad_state) == kSlotBadState);
static_assert(static_cast<int>(DecodedToken::Status::empty) == kSlotEmpty);

constexpr int64_t kRingSteps = DecodeSlots::kMostInFlight;
constexpr size_t kMostGraphs = 32;
constexpr size_t kPlaceAlignment = 16;
// The numbers of rows that graphs are captured for, then multiples of the last.
constexpr std::array<int64_t, 11> kBuckets = {1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256};

template <class T>
T* array_at(std::byte* state, size_t offset) {
  return reinterpret_cast<T*>(state + offset);
}

size_t align_place(size_t bytes) {
  return (bytes + kPlaceAlignment - 1) / kPlaceAlignment * kPlaceAlignment;
}

int64_t bucket_of(int64_t count, int64_t most) {
  const auto bucket = std::lower_bound(kBuckets.begin(), kBuckets.end(), count);
  const int64_t rows =
      bucket != kBuckets.end() ? *bucket : divide_up(count, kBuckets.back()) * kBuckets.back();
  return std::min(rows, most);
}

// Chunks of keys of the longest row that any of the slots comes to, rounded up to a power of two.
int64_t most_chunks(std::span<const DecodeSlot> slots) {
  int64_t longest = 1;
  for (const DecodeSlot& slot : slots) {
    longest = std::max(longest, slot.position + slot.num_steps);
  }
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(divide_up(longest, kChunkKeys))));
}

}  // namespace

// The arrays of a block of state, on the CPU or on the device.
struct CudaDecodeSlots::Arrays {
  int64_t* step;
  NumberSpan* stops;
  int32_t* steps_left;
  int32_t* tokens;
  int32_t* positions;
  int32_t* output_rows;
  SlotToken* drawn;
  uint8_t* finite;
  uint8_t* wants_logprob;
  std::vector<SlotGroup> groups;
  int32_t* numbers;
};

CudaDecodeSlots::CudaDecodeSlots(CudaDevice& device, ScratchMemory& memory, BoundSpans& bound,
                                 const DecodeArrays& arrays)
    : device_(device),
      scratch_(memory),
      bound_(bound),
      arrays_(arrays),
      num_slots_(std::ssize(arrays.tokens)),
      layout_(lay_out()),
      state_(memory),
      bound_slices_(arrays.groups.size()),
      ring_(static_cast<SlotToken*>(device.allocate_pinned(
          static_cast<size_t>(kRingSteps * num_slots_) * sizeof(SlotToken)))) {
  PL_CHECK(std::ssize(arrays.groups) <= kMostSlotGroups, "decode slots: too many cache groups");
  for (auto& event : events_) event = device.make_event();
}

CudaDecodeSlots::~CudaDecodeSlots() {
  unbind();
  try {
    device_.synchronize();  // steps that were not read write to the ring
  } catch (const Error&) {  // the device is spoiled and writes nothing any more
  }
  device_.release_pinned(ring_, static_cast<size_t>(kRingSteps * num_slots_) * sizeof(SlotToken));
}

void CudaDecodeSlots::unbind() {
  for (const void* begin : {static_cast<const void*>(arrays_.tokens.data()),
                            static_cast<const void*>(arrays_.positions.data()),
                            static_cast<const void*>(arrays_.output_rows.data()),
                            static_cast<const void*>(arrays_.finite.data())}) {
    bound_.unbind(begin);
  }
  for (const DecodeArrays::Group& group : arrays_.groups) {
    bound_.unbind(group.slots.data());
    bound_.unbind(group.slices.data());
  }
}

void CudaDecodeSlots::bind() {
  const Arrays arrays = view(state_address_);
  bound_.bind(arrays_.tokens, arrays.tokens);
  bound_.bind(arrays_.positions, arrays.positions);
  bound_.bind(arrays_.output_rows, arrays.output_rows);
  bound_.bind(arrays_.finite, arrays.finite);
  for (size_t g = 0; g < arrays.groups.size(); ++g) {
    bound_slices_[g] = {.rows = arrays.groups[g].rows, .tables = arrays.numbers};
    bound_.bind(arrays_.groups[g].slots, arrays.groups[g].kv_slots);
    bound_.bind(arrays_.groups[g].slices, &bound_slices_[g]);
  }
}

CudaDecodeSlots::Layout CudaDecodeSlots::lay_out() const {
  const auto slots = static_cast<size_t>(num_slots_);
  size_t end = 0;
  const auto take = [&end](size_t bytes) {
    const size_t begin = end;
    end = align_place(end + bytes);
    return begin;
  };
  Layout layout{};
  layout.step = take(sizeof(int64_t));
  layout.stops = take(slots * sizeof(NumberSpan));
  layout.steps_left = take(slots * sizeof(int32_t));
  layout.tokens = take(slots * sizeof(int32_t));
  layout.positions = take(slots * sizeof(int32_t));
  layout.output_rows = take(slots * sizeof(int32_t));
  layout.drawn = take(slots * sizeof(SlotToken));
  layout.finite = take(slots);
  layout.wants_logprob = take(slots);
  for (size_t g = 0; g < arrays_.groups.size(); ++g) {
    const size_t kv_slots = take(slots * sizeof(int64_t));
    layout.groups.push_back({.kv_slots = kv_slots, .rows = take(slots * sizeof(AttentionRow))});
  }
  layout.numbers = end;
  return layout;
}

CudaDecodeSlots::Arrays CudaDecodeSlots::view(std::byte* state) const {
  Arrays arrays{.step = array_at<int64_t>(state, layout_.step),
                .stops = array_at<NumberSpan>(state, layout_.stops),
                .steps_left = array_at<int32_t>(state, layout_.steps_left),
                .tokens = array_at<int32_t>(state, layout_.tokens),
                .positions = array_at<int32_t>(state, layout_.positions),
                .output_rows = array_at<int32_t>(state, layout_.output_rows),
                .drawn = array_at<SlotToken>(state, layout_.drawn),
                .finite = array_at<uint8_t>(state, layout_.finite),
                .wants_logprob = array_at<uint8_t>(state, layout_.wants_logprob),
                .groups = {},
                .numbers = array_at<int32_t>(state, layout_.numbers)};
  for (size_t g = 0; g < layout_.groups.size(); ++g) {
    arrays.groups.push_back({.kv_slots = array_at<int64_t>(state, layout_.groups[g].kv_slots),
                             .rows = array_at<AttentionRow>(state, layout_.groups[g].rows),
                             .window = arrays_.groups[g].window});
  }
  return arrays;
}

std::vector<std::byte> CudaDecodeSlots::image(
    std::span<const DecodeSlot> slots,
    std::span<const std::span<const AttentionSlice>> groups) const {
  std::vector<int32_t> numbers;
  const auto append = [&numbers](std::span<const int32_t> values) {
    const auto first = static_cast<int32_t>(numbers.size());
    numbers.insert(numbers.end(), values.begin(), values.end());
    return NumberSpan{.first = first, .count = static_cast<int32_t>(values.size())};
  };
  std::vector<std::byte> state(layout_.numbers);
  const Arrays arrays = view(state.data());
  for (int64_t i = 0; i < num_slots_; ++i) {
    arrays.output_rows[i] = static_cast<int32_t>(i);
    for (const SlotGroup& group : arrays.groups) {
      group.kv_slots[i] = -1;
      group.rows[i].row = i;
    }
  }
  constexpr int64_t kMostSteps = std::numeric_limits<int32_t>::max();
  for (size_t i = 0; i < slots.size(); ++i) {
    const DecodeSlot& slot = slots[i];
    if (slot.num_steps <= 0) continue;
    arrays.tokens[i] = slot.token;
    arrays.positions[i] = slot.position;
    arrays.steps_left[i] = static_cast<int32_t>(std::min(slot.num_steps, kMostSteps));
    arrays.wants_logprob[i] = slot.wants_logprob ? 1 : 0;
    arrays.stops[i] = append(slot.stop_ids);
    for (size_t g = 0; g < arrays.groups.size(); ++g) {
      const std::span<const int32_t> table = groups[g][i].block_table;
      const SlotGroup& group = arrays.groups[g];
      const int64_t position = slot.position, size = arrays_.block_size;
      PL_CHECK(position + slot.num_steps <= std::ssize(table) * size,
               "decode slots: a sequence's blocks reach to its last step");
      group.kv_slots[i] = table[static_cast<size_t>(position / size)] * size + position % size;
      group.rows[i].end = position + 1;
      group.rows[i].first =
          group.window > 0 ? std::max<int64_t>(0, position + 1 - group.window) : 0;
      group.rows[i].table = append(table).first;
    }
  }
  const auto bytes = std::as_bytes(std::span(numbers));
  state.insert(state.end(), bytes.begin(), bytes.end());
  return state;
}

void CudaDecodeSlots::upload(const std::vector<std::byte>& state) {
  constexpr size_t kFirstNumbers = size_t{16} << 10;
  if (state.size() > state_bytes_) {
    state_bytes_ = std::max(2 * state.size(), layout_.numbers + kFirstNumbers);
  }
  auto* const address = static_cast<std::byte*>(state_.reserve(state_bytes_));
  if (address != state_address_) {
    state_address_ = address;
    unbind();
    bind();
  }
  device_.copy_to_device(state_address_, state.data(), state.size());
}

void CudaDecodeSlots::bind_slices(int64_t chunks) {
  for (size_t g = 0; g < bound_slices_.size(); ++g) {
    const int64_t window = arrays_.groups[g].window;
    // A window may begin and end inside of a chunk.
    bound_slices_[g].most_chunks = window > 0 ? std::min(chunks, window / kChunkKeys + 2) : chunks;
  }
}

void CudaDecodeSlots::load(std::span<const DecodeSlot> slots,
                           std::span<const std::span<const AttentionSlice>> groups,
                           const ComputeStep& compute) {
  PL_CHECK(std::ssize(slots) > 0 && std::ssize(slots) <= num_slots_, "decode slots: there is room");
  PL_CHECK(groups.size() == arrays_.groups.size(), "decode slots: a table for each group");
  num_started_ = num_read_ = 0;
  num_loaded_ = std::ssize(slots);
  loaded_ = {.rows = bucket_of(num_loaded_, num_slots_), .chunks = most_chunks(slots)};
  const std::vector<std::byte> state = image(slots, groups);
  upload(state);  // it may move
  const auto found = graphs_.find(loaded_);
  if (found != graphs_.end() && found->second.num_moves == scratch_.num_moves) return;
  capture(loaded_, compute);
  upload(state);
}

// The step runs once with empty slots before it is captured: scratch grows to its need, and the
// driver loads the kernels.
void CudaDecodeSlots::capture(const GraphKey& key, const ComputeStep& compute) {
  if (graphs_.size() >= kMostGraphs) graphs_.clear();
  bind_slices(key.chunks);
  upload(image({}, {}));
  compute_step(key.rows, compute);
  GraphCapture capture(device_);
  compute_step(key.rows, compute);
  graphs_[key] = {.graph = capture.finish(), .num_moves = scratch_.num_moves};
}

void CudaDecodeSlots::compute_step(int64_t rows, const ComputeStep& compute) {
  compute(rows);
  advance(rows);
}

void CudaDecodeSlots::draw(int64_t first_slot, const Tensor& logits) {
  const Arrays arrays = view(state_address_);
  cuda::launch<DrawLargest>(device_, {.x = static_cast<uint32_t>(logits.size(0))},
                            {.logits = const_rows_of(logits),
                             .width = logits.size(1),
                             .steps_left = arrays.steps_left + first_slot,
                             .wants_logprob = arrays.wants_logprob + first_slot,
                             .out = arrays.drawn + first_slot});
}

void CudaDecodeSlots::advance(int64_t rows) {
  const Arrays arrays = view(state_address_);
  AdvanceSlots::Params params{.num_slots = rows,
                              .block_size = arrays_.block_size,
                              .tokens = arrays.tokens,
                              .positions = arrays.positions,
                              .steps_left = arrays.steps_left,
                              .stops = arrays.stops,
                              .numbers = arrays.numbers,
                              .finite = arrays.finite,
                              .drawn = arrays.drawn,
                              .groups = {},
                              .num_groups = static_cast<int32_t>(arrays.groups.size()),
                              .ring_size = static_cast<int32_t>(kRingSteps),
                              .ring = ring_,
                              .ring_stride = num_slots_,
                              .step = arrays.step};
  std::copy(arrays.groups.begin(), arrays.groups.end(), params.groups);
  cuda::launch<AdvanceSlots>(device_, {}, params);
}

void CudaDecodeSlots::start_step() {
  PL_CHECK(num_loaded_ > 0 && num_started_ - num_read_ < kMostInFlight,
           "decode slots: a step is read before the next but one");
  device_.launch(*graphs_.at(loaded_).graph);
  device_.record(*events_[static_cast<size_t>(num_started_ % kMostInFlight)]);
  ++num_started_;
}

std::span<const DecodedToken> CudaDecodeSlots::read_step() {
  PL_CHECK(num_read_ < num_started_, "decode slots: a step is started before it is read");
  device_.wait(*events_[static_cast<size_t>(num_read_ % kMostInFlight)]);
  const SlotToken* const entries = ring_ + num_read_ % kRingSteps * num_slots_;
  ++num_read_;
  tokens_.clear();
  for (int64_t i = 0; i < num_loaded_; ++i) {
    tokens_.push_back({.status = static_cast<DecodedToken::Status>(entries[i].status),
                       .id = entries[i].id,
                       .logprob = entries[i].logprob});
  }
  return tokens_;
}

}  // namespace paceline::cuda
