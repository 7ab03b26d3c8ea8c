#include "kernels/cuda/cuda_decode_slots.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/divide_up.h"
#include "base/error.h"
#include "kernels/cuda/code/adjust_rows.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/operand_views.h"

namespace paceline::cuda {
namespace {

static_assert(static_cast<int>(DecodedToken::Status::ok) == static_cast<int>(DrawOutcome::ok));
static_assert(static_cast<int>(DecodedToken::Status::all_forbidden) ==
              static_cast<int>(DrawOutcome::all_forbidden));
static_assert(static_cast<int>(DecodedToken::Status::bad_state) == kSlotBadState);
static_assert(static_cast<int>(DecodedToken::Status::empty) == kSlotEmpty);
static_assert(sizeof(TokenScore) == sizeof(TokenLogprob));

constexpr int64_t kMostScores = 128;  // beside a drawn token
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

bool forbids(const DecodeSlot& slot) {
  return slot.num_forbidding > 0 && !slot.forbidden_ids.empty();
}

// Whether other logits than the model's are drawn from.
bool draws_from_others(const DecodeSlot& slot) {
  const RowDraw& draw = slot.draw;
  return penalises(draw) || !draw.logit_bias.empty() || !draw.allowed.empty() || forbids(slot);
}

// Appends a list to `lists`, with room for `more` elements, and sets `list` to its place in a state
// whose lists begin at `begin`.
template <class T, class U>
void append_list(std::span<const T> elements, int64_t more, size_t begin,
                 std::vector<std::byte>& lists, U*& list) {
  static_assert(sizeof(T) == sizeof(U));
  if (elements.empty() && more == 0) return;
  lists.resize(align_place(lists.size()));
  list = reinterpret_cast<U*>(begin + lists.size());
  const auto bytes = std::as_bytes(elements);
  lists.insert(lists.end(), bytes.begin(), bytes.end());
  lists.resize(lists.size() + static_cast<size_t>(more) * sizeof(T));
}

LoraLists lora_lists(const LoraTables& tables, size_t begin, std::vector<std::byte>& lists) {
  LoraLists made{.num_shrinks = static_cast<uint32_t>(tables.shrinks.size()),
                 .num_expands = static_cast<uint32_t>(tables.expands.size())};
  append_list(std::span<const LoraShrink>(tables.shrinks), 0, begin, lists, made.shrinks);
  append_list(std::span<const LoraExpand>(tables.expands), 0, begin, lists, made.expands);
  return made;
}

// Returns the ranks of a row, at most, rounded up to a power of two; 0 without adapters.
int64_t tabulate(std::span<const std::vector<LoraSegment>> lora, std::vector<LoraTables>& tables) {
  int64_t most = 0;
  for (size_t i = 0; i < lora.size(); ++i) {
    tables[i].clear();
    for (const LoraSegment& segment : lora[i]) tables[i].add(segment);
    most = std::max(most, tables[i].inner_width);
  }
  return most == 0 ? 0 : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(most)));
}

DrawRow draw_row(const DecodeSlot& slot, size_t begin, std::vector<std::byte>& lists) {
  const RowDraw& draw = slot.draw;
  PL_CHECK(!draw.forced && std::ssize(draw.logprob_token_ids) <= kMostScores &&
               draw.num_top_logprobs <= kMostScores,
           "decode slots: a draw that they can make");
  DrawRow row = settings_of(draw);
  row.position = int64_t{slot.position} + 1;
  if (penalises(draw)) {
    row.num_history = static_cast<uint32_t>(draw.history.size());
    append_list(draw.history, slot.num_steps, begin, lists, row.history);
  }
  row.num_biases = static_cast<uint32_t>(draw.logit_bias.size());
  append_list(draw.logit_bias, 0, begin, lists, row.biases);
  row.num_allowed_words = static_cast<uint32_t>(draw.allowed.size());
  append_list(draw.allowed, 0, begin, lists, row.allowed);
  if (forbids(slot)) {
    row.forbidden_before = row.position + slot.num_forbidding;
    row.num_forbidden = static_cast<uint32_t>(slot.forbidden_ids.size());
    append_list(slot.forbidden_ids, 0, begin, lists, row.forbidden);
  }
  row.num_listed = static_cast<uint32_t>(draw.logprob_token_ids.size());
  append_list(draw.logprob_token_ids, 0, begin, lists, row.listed);
  lists.resize(align_place(lists.size()));
  return row;
}

// Sets the state of slot `index`. Its saves are appended to `lists`, which begin at a multiple of
// their size.
void place_state(const StateSlices& states, size_t index, const DecodeSlot& slot, StateRows& rows,
                 std::vector<std::byte>& lists) {
  static_assert(sizeof(SavePoint) == kPlaceAlignment);
  const StateSlice& slice = states.slices.host()[index];
  lists.resize(align_place(lists.size()));
  rows.num_rows = 1;
  rows.first_position = slot.position;
  rows.block = slice.block;
  rows.open_block = slice.open_block;
  rows.first_save = static_cast<int32_t>(lists.size() / sizeof(SavePoint));
  rows.num_saves = static_cast<int32_t>(slice.num_saves);
  for (const StateSave& save : states.saves_of(slice)) {
    const SavePoint point{.position = save.position, .block = save.block};
    const auto bytes = std::as_bytes(std::span(&point, 1));
    lists.insert(lists.end(), bytes.begin(), bytes.end());
  }
}

}  // namespace

// The arrays of a block of state, on the CPU or on the device.
struct CudaDecodeSlots::Arrays {
  int64_t* step;
  DrawRow* draws;
  NumberSpan* stops;
  int32_t* steps_left;
  int32_t* tokens;
  int32_t* positions;
  int32_t* output_rows;
  DrawnToken* drawn;
  uint8_t* finite;
  LoraLists* lora;  // of the products
  std::vector<SlotGroup> groups;
  int32_t* numbers;
};

CudaDecodeSlots::CudaDecodeSlots(CudaDevice& device, ScratchMemory& memory,
                                 const DecodeShape& shape)
    : device_(device),
      scratch_(memory),
      shape_(shape),
      layout_(lay_out()),
      state_(memory),
      scores_(memory),
      sums_(memory),
      adjusted_(memory),
      lora_inner_(memory),
      lora_tables_(static_cast<size_t>(shape.num_products)),
      ring_(static_cast<SlotToken*>(device.allocate_pinned(ring_bytes()))),
      score_ring_(static_cast<TokenScore*>(device.allocate_pinned(score_ring_bytes()))) {
  PL_CHECK(std::ssize(shape.groups) <= kMostSlotGroups, "decode slots: too many cache groups");
  for (auto& event : events_) event = device.make_event();
}

CudaDecodeSlots::~CudaDecodeSlots() {
  try {
    device_.synchronize();  // steps that were not read write to the ring
  } catch (const Error&) {  // the device is spoiled and writes nothing any more
  }
  device_.release_pinned(ring_, ring_bytes());
  device_.release_pinned(score_ring_, score_ring_bytes());
}

size_t CudaDecodeSlots::ring_bytes() const {
  return static_cast<size_t>(kRingSteps * shape_.num_slots) * sizeof(SlotToken);
}

size_t CudaDecodeSlots::score_ring_bytes() const {
  return static_cast<size_t>(kRingSteps * shape_.num_slots * kMostScores) * sizeof(TokenScore);
}

CudaDecodeSlots::Layout CudaDecodeSlots::lay_out() const {
  const auto slots = static_cast<size_t>(shape_.num_slots);
  size_t end = 0;
  const auto take = [&end](size_t bytes) {
    const size_t begin = end;
    end = align_place(end + bytes);
    return begin;
  };
  Layout layout{};
  layout.step = take(sizeof(int64_t));
  layout.draws = take(slots * sizeof(DrawRow));
  layout.stops = take(slots * sizeof(NumberSpan));
  layout.steps_left = take(slots * sizeof(int32_t));
  layout.tokens = take(slots * sizeof(int32_t));
  layout.positions = take(slots * sizeof(int32_t));
  layout.output_rows = take(slots * sizeof(int32_t));
  layout.drawn = take(slots * sizeof(DrawnToken));
  layout.finite = take(slots);
  layout.lora = take(static_cast<size_t>(shape_.num_products) * sizeof(LoraLists));
  for (const DecodeGroup& group : shape_.groups) {
    Layout::Group& places = layout.groups.emplace_back();
    if (group.has_states) {
      places.states = take(slots * sizeof(StateRows));
      continue;
    }
    places.kv_slots = take(slots * sizeof(int64_t));
    places.rows = take(slots * sizeof(AttentionRow));
  }
  layout.numbers = end;
  return layout;
}

CudaDecodeSlots::Arrays CudaDecodeSlots::view(std::byte* state) const {
  Arrays arrays{.step = array_at<int64_t>(state, layout_.step),
                .draws = array_at<DrawRow>(state, layout_.draws),
                .stops = array_at<NumberSpan>(state, layout_.stops),
                .steps_left = array_at<int32_t>(state, layout_.steps_left),
                .tokens = array_at<int32_t>(state, layout_.tokens),
                .positions = array_at<int32_t>(state, layout_.positions),
                .output_rows = array_at<int32_t>(state, layout_.output_rows),
                .drawn = array_at<DrawnToken>(state, layout_.drawn),
                .finite = array_at<uint8_t>(state, layout_.finite),
                .lora = array_at<LoraLists>(state, layout_.lora),
                .groups = {},
                .numbers = array_at<int32_t>(state, layout_.numbers)};
  for (size_t g = 0; g < layout_.groups.size(); ++g) {
    const Layout::Group& places = layout_.groups[g];
    if (shape_.groups[g].has_states) {
      arrays.groups.push_back({.states = array_at<StateRows>(state, places.states)});
      continue;
    }
    arrays.groups.push_back({.kv_slots = array_at<int64_t>(state, places.kv_slots),
                             .rows = array_at<AttentionRow>(state, places.rows),
                             .window = shape_.groups[g].window});
  }
  return arrays;
}

std::vector<std::byte> CudaDecodeSlots::image(std::span<const DecodeSlot> slots,
                                              std::span<const SlotMemory> groups,
                                              std::span<const LoraTables> lora) const {
  std::vector<std::byte> state(layout_.numbers);
  // What stands behind the arrays, in parts: block tables and stop ids by their place among
  // numbers, the lists of draws by their place in the state.
  std::vector<std::byte> lists;
  const auto append = [&lists](std::span<const int32_t> values) {
    const auto first = static_cast<int32_t>(lists.size() / sizeof(int32_t));
    const auto bytes = std::as_bytes(values);
    lists.insert(lists.end(), bytes.begin(), bytes.end());
    return NumberSpan{.first = first, .count = static_cast<int32_t>(values.size())};
  };
  const Arrays arrays = view(state.data());
  for (int64_t i = 0; i < shape_.num_slots; ++i) {
    arrays.output_rows[i] = static_cast<int32_t>(i);
    for (const SlotGroup& group : arrays.groups) {
      if (group.states != nullptr) {
        group.states[i].first_row = i;
        continue;
      }
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
    arrays.stops[i] = append(slot.stop_ids);
    arrays.draws[i] = draw_row(slot, layout_.numbers, lists);
    for (size_t g = 0; g < arrays.groups.size(); ++g) {
      const SlotGroup& group = arrays.groups[g];
      if (group.states != nullptr) {
        place_state(groups[g].states, i, slot, group.states[i], lists);
        continue;
      }
      const std::span<const int32_t> table = groups[g].slices[i].block_table;
      const int64_t position = slot.position, size = shape_.block_size;
      PL_CHECK(position + slot.num_steps <= std::ssize(table) * size,
               "decode slots: a sequence's blocks reach to its last step");
      group.kv_slots[i] = table[static_cast<size_t>(position / size)] * size + position % size;
      group.rows[i].end = position + 1;
      group.rows[i].first =
          group.window > 0 ? std::max<int64_t>(0, position + 1 - group.window) : 0;
      group.rows[i].table = append(table).first;
    }
  }
  for (size_t i = 0; i < lora.size(); ++i) {
    arrays.lora[i] = lora_lists(lora[i], layout_.numbers, lists);
  }
  state.insert(state.end(), lists.begin(), lists.end());
  return state;
}

// The lists of draws and of adapters are where the state is.
void CudaDecodeSlots::relocate(std::vector<std::byte>& state) const {
  const auto place = [this]<class T>(T*& list) {
    if (list == nullptr) return;
    list = reinterpret_cast<T*>(state_address_ + reinterpret_cast<uintptr_t>(list));
  };
  const Arrays arrays = view(state.data());
  for (int64_t i = 0; i < shape_.num_products; ++i) {
    place(arrays.lora[i].shrinks);
    place(arrays.lora[i].expands);
  }
  DrawRow* const draws = arrays.draws;
  for (int64_t i = 0; i < shape_.num_slots; ++i) {
    place(draws[i].history);
    place(draws[i].biases);
    place(draws[i].allowed);
    place(draws[i].forbidden);
    place(draws[i].listed);
    draws[i].scored = scores_address_ + i * kMostScores;
  }
}

void CudaDecodeSlots::upload(std::vector<std::byte> state) {
  constexpr size_t kFirstNumbers = size_t{16} << 10;
  if (state.size() > state_bytes_) {
    state_bytes_ = std::max(2 * state.size(), layout_.numbers + kFirstNumbers);
  }
  state_address_ = static_cast<std::byte*>(state_.reserve(state_bytes_));
  scores_address_ = scores_.reserve_as<TokenScore>(shape_.num_slots * kMostScores);
  sums_.reserve_as<float>(shape_.num_slots);
  relocate(state);
  device_.copy_to_device(state_address_, state.data(), state.size());
}

void CudaDecodeSlots::load(std::span<const DecodeSlot> slots, std::span<const SlotMemory> groups,
                           std::span<const std::vector<LoraSegment>> lora,
                           const ComputeStep& compute) {
  PL_CHECK(std::ssize(slots) > 0 && std::ssize(slots) <= shape_.num_slots,
           "decode slots: there is room");
  PL_CHECK(groups.size() == shape_.groups.size(), "decode slots: the memory of each group");
  PL_CHECK(lora.empty() || std::ssize(lora) == shape_.num_products,
           "decode slots: segments for each product");
  num_started_ = num_read_ = 0;
  num_loaded_ = std::ssize(slots);
  loaded_ = {.rows = bucket_of(num_loaded_, shape_.num_slots),
             .chunks = most_chunks(slots),
             .adjusts = std::ranges::any_of(slots, draws_from_others),
             .scores = std::ranges::any_of(
                 slots, [](const DecodeSlot& slot) { return slot.draw.wants_logprob; }),
             .ranks = tabulate(lora, lora_tables_)};
  const std::vector<std::byte> state =
      image(slots, groups, std::span(lora_tables_).first(lora.size()));
  upload(state);  // which may move
  const auto found = graphs_.find(loaded_);
  if (found != graphs_.end() && found->second.num_moves == scratch_.num_moves) return;
  capture(loaded_, compute);
  upload(state);
}

// The step runs once with empty slots before it is captured: scratch grows to its need, and the
// driver loads the kernels.
void CudaDecodeSlots::capture(const GraphKey& key, const ComputeStep& compute) {
  if (graphs_.size() >= kMostGraphs) graphs_.clear();
  captured_ = key;
  upload(image({}, {}, {}));
  compute_step(compute);
  GraphCapture capture(device_);
  compute_step(compute);
  graphs_[key] = {.graph = capture.finish(), .num_moves = scratch_.num_moves};
}

void CudaDecodeSlots::compute_step(const ComputeStep& compute) {
  const int64_t rows = captured_.rows, chunks = captured_.chunks;
  const Arrays arrays = view(state_address_);
  DecodeStep step{.arrays = {.tokens = Indices<int32_t>::on_device(arrays.tokens, rows),
                             .positions = Indices<int32_t>::on_device(arrays.positions, rows),
                             .output_rows = Indices<int32_t>::on_device(arrays.output_rows, rows),
                             .groups = {}},
                  .finite = RowFlags::on_device(arrays.finite, rows),
                  .has_adapters = captured_.ranks > 0};
  for (const SlotGroup& group : arrays.groups) {
    if (group.states != nullptr) {
      const DeviceStates states{.slices = group.states,
                                .saves = reinterpret_cast<const SavePoint*>(arrays.numbers)};
      step.arrays.groups.push_back(
          {.slots = {}, .slices = {}, .states = {StateSliceSpan::on_device(states, rows)}});
      continue;
    }
    // A window may begin and end inside of a chunk.
    const int64_t most =
        group.window > 0 ? std::min(chunks, group.window / kChunkKeys + 2) : chunks;
    const DeviceSlices slices{.rows = group.rows, .tables = arrays.numbers, .most_chunks = most};
    step.arrays.groups.push_back({.slots = Indices<int64_t>::on_device(group.kv_slots, rows),
                                  .slices = AttentionSlices::on_device(slices, rows)});
  }
  compute(step);
  advance(rows);
}

void CudaDecodeSlots::draw(int64_t first_slot, const Tensor& logits) {
  const Arrays arrays = view(state_address_);
  const int64_t rows = logits.size(0), width = logits.size(1);
  DrawLaunch draws{.num_rows = rows,
                   .width = width,
                   .rows = arrays.draws + first_slot,
                   .logits = const_rows_of(logits),
                   .drawn = arrays.drawn + first_slot};
  if (captured_.adjusts) draws.adjusted = {adjusted_.reserve_as<float>(rows * width), width};
  if (captured_.scores) draws.log_sum_exp = sums_.reserve_as<float>(shape_.num_slots) + first_slot;
  launch_draws(device_, draws);
  if (!captured_.adjusts) return;
  cuda::launch<CountTokens>(device_, {static_cast<uint32_t>(rows)},
                            {arrays.draws + first_slot, arrays.drawn + first_slot});
}

// Inner sums are as wide as any adapters' of this graph.
void CudaDecodeSlots::add_lora(int64_t product, const Tensor& x, const Tensor& out) {
  const int64_t rows = x.size(0), ranks = captured_.ranks;
  PL_CHECK(product < shape_.num_products && ranks > 0, "decode slots: an adapter's product");
  launch_lora(device_,
              {.bound = view(state_address_).lora + product,
               .num_rows = rows,
               .inner = lora_inner_.reserve_as<float>(lora_inner_floats(rows, ranks, x.size(1))),
               .inner_width = static_cast<uint32_t>(ranks)},
              ranks, x, out);
}

void CudaDecodeSlots::advance(int64_t rows) {
  const Arrays arrays = view(state_address_);
  AdvanceSlots::Params params{.num_slots = rows,
                              .block_size = shape_.block_size,
                              .tokens = arrays.tokens,
                              .positions = arrays.positions,
                              .steps_left = arrays.steps_left,
                              .stops = arrays.stops,
                              .numbers = arrays.numbers,
                              .finite = arrays.finite,
                              .rows = arrays.draws,
                              .drawn = arrays.drawn,
                              .groups = {},
                              .num_groups = static_cast<int32_t>(arrays.groups.size()),
                              .ring_size = static_cast<int32_t>(kRingSteps),
                              .ring = ring_,
                              .scores = score_ring_,
                              .ring_stride = shape_.num_slots,
                              .scores_stride = kMostScores,
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
  const int64_t first = num_read_ % kRingSteps * shape_.num_slots;
  ++num_read_;
  tokens_.resize(static_cast<size_t>(num_loaded_));
  for (int64_t i = 0; i < num_loaded_; ++i) {
    const SlotToken& entry = ring_[first + i];
    const TokenScore* const scores = score_ring_ + (first + i) * kMostScores;
    if (entry.num_scored > kMostScores) {
      throw Error(ErrorCode::internal, "decode slots: a step has written no token");
    }
    DecodedToken& token = tokens_[static_cast<size_t>(i)];
    token.status = static_cast<DecodedToken::Status>(entry.status);
    token.id = entry.id;
    token.logprob = entry.logprob;
    token.top_logprobs.clear();
    for (uint32_t k = 0; k < entry.num_scored; ++k) {
      token.top_logprobs.push_back({scores[k].id, scores[k].logprob});
    }
  }
  return tokens_;
}

}  // namespace paceline::cuda
