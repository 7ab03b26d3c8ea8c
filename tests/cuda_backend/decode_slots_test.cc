// Decode slots on the emulation: a model that is a table of logits, stepped without the CPU.
#include "kernels/decode_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cuda/make_cuda_backend.h"
#include "tests/cuda/every_order.h"
#include "tests/cuda_backend/emulated_backend.h"
#include "tests/kernels/op_inputs.h"

namespace paceline::cuda {
namespace {

constexpr int64_t kVocab = 96;
constexpr int64_t kBlockSize = 4;
constexpr int64_t kInputs = 1100;  // of adapters
using Status = DecodedToken::Status;
const RowDraw kGreedy = {{.temperature = 0}};
const RowDraw kWithLogprob = [] {
  RowDraw draw = kGreedy;
  draw.wants_logprob = true;
  return draw;
}();

// The token that follows a token has the largest number in its row.
using LogitTable = std::vector<std::vector<float>>;

LogitTable random_rows(uint64_t seed) {
  Memory memory;
  const OwnedTensor made = random_tensor(memory, DType::f32, {kVocab, kVocab}, seed, 8.0f);
  LogitTable rows;
  for (int64_t r = 0; r < kVocab; ++r) {
    const float* const row = made.view.row<float>(r);
    rows.emplace_back(row, row + kVocab);
  }
  return rows;
}

// Slots whose step takes a row of the table for each token.
class TableModel {
 public:
  TableModel(Backend& backend, const LogitTable& rows, int64_t num_slots)
      : backend_(backend),
        states_(allocate_tensor(backend.memory(), DType::f32, {num_slots, kVocab})),
        logits_(allocate_tensor(backend.memory(), DType::f32, {num_slots, kVocab})),
        zeros_(allocate_tensor(backend.memory(), DType::f32, {num_slots, kVocab})),
        inputs_(allocate_tensor(backend.memory(), DType::f32, {num_slots, kInputs})) {
    Memory memory;
    const OwnedTensor table = allocate_tensor(memory, DType::f32, {kVocab, kVocab});
    for (int64_t r = 0; r < kVocab; ++r) {
      const auto& row = rows[static_cast<size_t>(r)];
      std::copy(row.begin(), row.end(), table.view.row<float>(r));
    }
    table_ = backend.pack_matrix(std::array{table.view}, DType::f32);
    backend.write(std::vector<float>(static_cast<size_t>(num_slots * kInputs), 1.0f), inputs_.view);
    decode_ = backend.make_decode_slots(
        {.num_slots = num_slots, .groups = {{}}, .block_size = kBlockSize, .num_products = 1});
  }

  DecodeSlots& slots() { return *decode_; }
  void load(const std::vector<DecodeSlot>& slots) {
    const std::vector<int32_t> blocks(1 << 13);
    std::vector<AttentionSlice> slices;
    for (const DecodeSlot& slot : slots) {
      const int64_t end = slot.position + slot.num_steps;
      slices.push_back({.block_table = std::span<const int32_t>(blocks).first(
                            static_cast<size_t>((end + kBlockSize - 1) / kBlockSize))});
    }
    const SlotMemory group{.slices = slices};
    decode_->load(slots, std::array{group}, lora,
                  [this](const DecodeStep& step) { compute(step); });
  }
  // The next `count` steps, each started before the one before it is read.
  std::vector<std::vector<DecodedToken>> steps(int64_t count) {
    std::vector<std::vector<DecodedToken>> all;
    decode_->start_step();
    for (int64_t i = 0; i < count; ++i) {
      if (i + 1 < count) decode_->start_step();
      const auto tokens = decode_->read_step();
      all.emplace_back(tokens.begin(), tokens.end());
    }
    return all;
  }
  std::vector<std::vector<LoraSegment>> lora;  // of the product of states and their adapters
  bool checks_states = true;
  int64_t num_computed = 0;  // steps that were computed by the CPU's calls

 private:
  void compute(const DecodeStep& step) {
    ++num_computed;
    const int64_t rows = step.arrays.num_rows();
    const Tensor states = states_.view.slice(0, 0, rows), logits = logits_.view.slice(0, 0, rows);
    backend_.embedding(table_, step.arrays.tokens, 1.0f, states);
    backend_.scale(states, std::array{1.0f}, states);
    if (step.has_adapters) decode_->add_lora(0, inputs_.view.slice(0, 0, rows), states);
    backend_.finite_rows(checks_states ? states : zeros_.view.slice(0, 0, rows), step.finite);
    backend_.gather_rows(states, step.arrays.output_rows, logits);
    constexpr int64_t kPart = 3;  // rows of logits at once
    for (int64_t begin = 0; begin < rows; begin += kPart) {
      decode_->draw(begin, logits.slice(0, begin, std::min(begin + kPart, rows)));
    }
  }

  Backend& backend_;
  OwnedTensor states_, logits_, zeros_;
  OwnedTensor inputs_;  // of the adapters; ones
  PackedMatrix table_;
  std::unique_ptr<DecodeSlots> decode_;
};

int32_t largest(const std::vector<float>& row) {
  return static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

// What the slot draws, step by step, by a loop on the CPU.
std::vector<DecodedToken> expected_of(const DecodeSlot& slot, const LogitTable& rows,
                                      Backend& backend, int64_t num_steps) {
  std::vector<DecodedToken> drawn;
  int32_t token = slot.token;
  int64_t left = slot.num_steps;
  OwnedTensor on_device = allocate_tensor(backend.memory(), DType::f32, {1, kVocab});
  for (int64_t i = 0; i < num_steps; ++i) {
    if (left == 0) {
      drawn.push_back({});
      continue;
    }
    const auto& row = rows[static_cast<size_t>(token)];
    token = largest(row);
    float log_sum_exp = 0.0f;
    backend.write(row, on_device.view);
    backend.log_sum_exp(on_device.view, std::span(&log_sum_exp, 1));
    const float logprob = std::min(0.0f, row[static_cast<size_t>(token)] - log_sum_exp);
    drawn.push_back(
        {.status = Status::ok, .id = token, .logprob = slot.draw.wants_logprob ? logprob : 0.0f});
    const bool stops = std::ranges::find(slot.stop_ids, token) != slot.stop_ids.end();
    left = stops ? 0 : left - 1;
  }
  return drawn;
}

void expect_steps(TableModel& model, const std::vector<DecodeSlot>& slots, const LogitTable& rows,
                  Backend& backend, int64_t num_steps) {
  model.load(slots);
  const auto steps = model.steps(num_steps);
  for (size_t i = 0; i < slots.size(); ++i) {
    const auto expected = expected_of(slots[i], rows, backend, num_steps);
    for (size_t step = 0; step < expected.size(); ++step) {
      ASSERT_EQ(steps[step].size(), slots.size());
      const DecodedToken& found = steps[step][i];
      EXPECT_EQ(found.status, expected[step].status) << "slot " << i << ", step " << step;
      EXPECT_EQ(found.id, expected[step].id) << "slot " << i << ", step " << step;
      EXPECT_EQ(found.logprob, expected[step].logprob) << "slot " << i << ", step " << step;
    }
  }
}

TEST(CudaDecodeSlots, FeedEachTokenToTheNextStep) {
  EmulatedBackend backend({.guards_memory = true});
  const LogitTable rows = random_rows(1);
  TableModel model(*backend, rows, 11);
  const std::vector<int32_t> stops = {largest(rows[5]), 90};
  std::vector<DecodeSlot> slots;
  for (int32_t i = 0; i < 9; ++i) {
    slots.push_back({.token = 7 * i + 3,
                     .position = 5 * i,
                     .num_steps = 1 + 3 * i % 11,
                     .draw = i % 2 == 0 ? kWithLogprob : kGreedy});
  }
  slots[4].num_steps = 0;  // empty from the start
  slots[7] = {.token = 5, .position = 100, .num_steps = 9, .stop_ids = stops, .draw = kGreedy};
  expect_steps(model, slots, rows, *backend, 11);
  expect_steps(model, {slots[2]}, rows, *backend, 4);
  expect_steps(model, {slots[7], slots[2]}, rows, *backend, 5);
  expect_steps(model, slots, rows, *backend, 11);
}

TEST(CudaDecodeSlots, CaptureAStepOnceForANumberOfSlots) {
  EmulatedBackend backend;
  const LogitTable rows = random_rows(2);
  TableModel model(*backend, rows, 8);
  const DecodeSlot slot{.token = 1, .position = 3, .num_steps = 6, .draw = kGreedy};
  expect_steps(model, {slot}, rows, *backend, 6);  // and scratch of what is expected grows
  int64_t before = model.num_computed;
  EXPECT_EQ(before, 2) << "once before it is captured, once then";
  for (int turn = 0; turn < 3; ++turn) expect_steps(model, {slot}, rows, *backend, 6);
  EXPECT_EQ(model.num_computed, before + 2) << "as scratch has moved";
  expect_steps(model, {slot, slot, slot}, rows, *backend, 6);
  expect_steps(model, {slot, slot, slot, slot}, rows, *backend, 6);
  EXPECT_EQ(model.num_computed, before + 4) << "three slots and four are one graph";
  // More blocks than were reserved: the state moves.
  expect_steps(model, {{.token = 2, .position = 30000, .num_steps = 30, .draw = kGreedy}}, rows,
               *backend, 30);
  before = model.num_computed;
  expect_steps(model, {slot}, rows, *backend, 6);
  EXPECT_EQ(model.num_computed, before + 2);
}

TEST(CudaDecodeSlots, MayEndBeforeTheirStepIsRead) {
  EmulatedBackend backend;
  const LogitTable rows = random_rows(3);
  const DecodeSlot slot{.token = 1, .position = 3, .num_steps = 6, .draw = kGreedy};
  for (int turn = 0; turn < 2; ++turn) {
    TableModel model(*backend, rows, 4);
    expect_steps(model, {slot}, rows, *backend, 3);
    model.slots().start_step();  // that is never read
  }
}

// A step that is in flight when others are loaded.
TEST(CudaDecodeSlots, DropStepsThatWereNotRead) {
  EmulatedBackend backend;
  const LogitTable rows = random_rows(4);
  TableModel model(*backend, rows, 4);
  const DecodeSlot slot{.token = 9, .position = 3, .num_steps = 8, .draw = kGreedy};
  model.load({slot});
  model.slots().start_step();
  model.slots().start_step();
  model.slots().read_step();
  expect_steps(model, {slot, slot}, rows, *backend, 8);
}

TEST(CudaDecodeSlots, TiesGoToTheLowestIdAndBadRowsAreReported) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  LogitTable rows(kVocab, std::vector<float>(kVocab, -1.0f));
  rows[0][40] = rows[0][72] = rows[0][41] = 3.0f;
  rows[1].assign(kVocab, 0.0f);
  rows[1][0] = -1.0f;
  rows[1][6] = -0.0f;
  for (size_t i = 1; i < 6; ++i) rows[1][i] = -1.0f;
  rows[2][95] = 1e-42f;
  EmulatedBackend backend;
  TableModel model(*backend, rows, 8);
  std::vector<DecodeSlot> slots;
  for (int32_t i = 0; i < 3; ++i) {
    slots.push_back({.token = i, .num_steps = 1, .draw = kWithLogprob});
  }
  expect_steps(model, slots, rows, *backend, 1);
  EXPECT_EQ(largest(rows[1]), 6);

  rows[3][50] = nan;
  rows[4][7] = kInf;
  rows[5].assign(kVocab, -kInf);
  for (const bool checks_states : {true, false}) {
    TableModel bad(*backend, rows, 8);
    bad.checks_states = checks_states;
    bad.load({{.token = 3, .num_steps = 5, .draw = kGreedy},
              {.token = 4, .num_steps = 5, .draw = kGreedy},
              {.token = 5, .num_steps = 5, .draw = kGreedy},
              {.token = 0, .num_steps = 5, .draw = kGreedy}});
    const auto steps = bad.steps(2);
    const Status expected[] = {checks_states ? Status::bad_state : Status::nan_logits,
                               checks_states ? Status::bad_state : Status::nothing_to_draw,
                               checks_states ? Status::bad_state : Status::nothing_to_draw};
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(steps[0][i].status, expected[i]);
      EXPECT_EQ(steps[0][i].id, -1);
      EXPECT_EQ(steps[1][i].status, Status::empty);
    }
    EXPECT_EQ(steps[1][3].status, Status::ok);
  }
}

// All settings of a draw, against a RowSampler that gets each row with a history from the CPU.
TEST(CudaDecodeSlots, DrawAsTheRowSamplerDoes) {
  EmulatedBackend backend({.guards_memory = true});
  const LogitTable rows = random_rows(6);
  TableModel model(*backend, rows, 6);
  const std::vector<TokenCount> history = {{.id = 4, .in_output = 2}, {.id = 40, .in_output = 0}};
  const std::vector<std::pair<int32_t, float>> biases = {{3, 2.0f}, {17, -3.0f}};
  const std::vector<int32_t> listed = {7, 95};
  const std::vector<uint64_t> allowed = {0x0FF0F0F0F0F0F0F0u, 0xFFFFFFFFu};
  std::vector<DecodeSlot> slots(5);
  for (size_t i = 0; i < slots.size(); ++i) {
    slots[i] = {.token = static_cast<int32_t>(9 * i), .position = static_cast<int32_t>(7 * i)};
    slots[i].num_steps = 12;
    slots[i].draw = {{.temperature = 1.2f, .seed = i}};
    slots[i].draw.wants_logprob = true;
  }
  slots[1].draw.top_k = 20;
  slots[1].draw.num_top_logprobs = 4;
  slots[2].draw.repetition_penalty = 1.3f;
  slots[2].draw.frequency_penalty = 0.7f;
  slots[2].draw.history = history;
  slots[3].draw.logit_bias = biases;
  slots[3].draw.logprob_token_ids = listed;
  slots[4].draw.allowed = allowed;
  slots[4].draw.presence_penalty = 1.0f;
  slots[4].draw.history = history;
  model.load(slots);
  const auto steps = model.steps(12);
  const OwnedTensor row = allocate_tensor(backend->memory(), DType::f32, {1, kVocab});
  for (size_t i = 0; i < slots.size(); ++i) {
    RowDraw draw = slots[i].draw;
    std::vector<TokenCount> counts(draw.history.begin(), draw.history.end());
    int32_t token = slots[i].token;
    for (size_t step = 0; step < steps.size(); ++step) {
      SCOPED_TRACE(::testing::Message() << "slot " << i << ", step " << step);
      draw.position = slots[i].position + 1 + static_cast<int64_t>(step);
      draw.history = counts;
      backend->write(rows[static_cast<size_t>(token)], row.view);
      Sample sample;
      RowSampler& sampler = *backend->row_sampler();
      sampler.begin({&draw, 1}, kVocab);
      sampler.draw(0, row.view);
      sampler.finish({&sample, 1});
      const DecodedToken& found = steps[step][i];
      ASSERT_EQ(found.status, Status::ok);
      EXPECT_EQ(found.id, sample.id);
      EXPECT_EQ(found.logprob, sample.logprob);
      ASSERT_EQ(found.top_logprobs.size(), sample.top_logprobs.size());
      for (size_t k = 0; k < sample.top_logprobs.size(); ++k) {
        EXPECT_EQ(found.top_logprobs[k].id, sample.top_logprobs[k].id);
        EXPECT_EQ(found.top_logprobs[k].logprob, sample.top_logprobs[k].logprob);
      }
      token = sample.id;
      const auto known = std::ranges::find(counts, token, &TokenCount::id);
      if (known != counts.end()) {
        ++known->in_output;
      } else if (!counts.empty()) {
        counts.push_back({.id = token, .in_output = 1});
      }
    }
  }
}

// Adapters that add a row of numbers to the logits of some slots: those of another load, and none,
// take the same graphs.
TEST(CudaDecodeSlots, AddTheAdaptersOfTheirLoad) {
  EmulatedBackend backend({.guards_memory = true});
  const LogitTable rows = random_rows(7);
  TableModel model(*backend, rows, 6);
  Memory memory;
  const auto pack = [&](const std::vector<float>& elements, Extents shape) {
    const Tensor matrix(const_cast<float*>(elements.data()), DType::f32, shape);
    return backend->pack_matrix(std::array{matrix}, DType::f32);
  };
  // The inner sum is 1, and B favours one token.
  std::vector<float> first(kInputs);
  first[1050] = 1.0f;
  const PackedMatrix a = pack(first, {1, kInputs});
  std::vector<PackedMatrix> b;
  for (const size_t token : {40, 50}) {
    std::vector<float> favour(kVocab);
    favour[token] = 100.0f;
    b.push_back(pack(favour, {kVocab, 1}));
  }
  const auto expect_tokens = [&](const std::vector<int>& adapters) {
    std::vector<DecodeSlot> slots;
    model.lora.clear();
    for (size_t i = 0; i < adapters.size(); ++i) {
      slots.push_back({.token = static_cast<int32_t>(5 * i), .num_steps = 3, .draw = kGreedy});
      if (adapters[i] == 0) continue;
      model.lora.resize(1);
      const size_t which = static_cast<size_t>(adapters[i] - 1);
      model.lora[0].push_back(
          {.first_row = static_cast<int64_t>(i), .num_rows = 1, .a = &a, .b = &b[which]});
    }
    model.load(slots);
    const auto steps = model.steps(3);
    for (size_t i = 0; i < adapters.size(); ++i) {
      int32_t token = slots[i].token;
      for (const auto& step : steps) {
        token =
            adapters[i] == 0 ? largest(rows[static_cast<size_t>(token)]) : 30 + 10 * adapters[i];
        EXPECT_EQ(step[i].id, token) << "slot " << i;
      }
    }
  };
  expect_tokens({1, 0, 2, 2, 0, 1});
  const int64_t before = model.num_computed;
  expect_tokens({0, 0, 1, 0, 2, 0});
  expect_tokens({2, 2, 2, 2, 2, 2});
  EXPECT_EQ(model.num_computed, before) << "one graph, whichever adapters";
  expect_tokens({0, 0, 0, 0, 0, 0});
}

// Tokens of slot i are forbidden in its first steps, in the order of the logits.
TEST(CudaDecodeSlots, ForbidTokensInTheFirstSteps) {
  EmulatedBackend backend({.guards_memory = true});
  LogitTable rows(kVocab, std::vector<float>(kVocab, -1.0f));
  for (auto& row : rows) {
    row[70] = 5.0f;
    row[20] = 4.0f;
    row[60] = 3.0f;
  }
  TableModel model(*backend, rows, 4);
  const std::vector<int32_t> both = {70, 20, 70}, one = {70};
  const std::vector<std::pair<int32_t, float>> biases = {{20, -2.5f}, {70, 1.0f}};
  std::vector<DecodeSlot> slots(4, {.token = 1, .num_steps = 4, .draw = kGreedy});
  slots[0].forbidden_ids = both;
  slots[0].num_forbidding = 2;
  slots[1].forbidden_ids = one;
  slots[1].num_forbidding = 3;
  slots[1].draw.logit_bias = biases;
  slots[2].forbidden_ids = one;
  slots[2].num_forbidding = 9;
  slots[3].forbidden_ids = one;  // in no step
  model.load(slots);
  const auto steps = model.steps(4);
  const std::vector<std::vector<int32_t>> expected = {
      {60, 60, 70, 70}, {60, 60, 60, 70}, {20, 20, 20, 20}, {70, 70, 70, 70}};
  for (size_t i = 0; i < slots.size(); ++i) {
    for (size_t step = 0; step < steps.size(); ++step) {
      EXPECT_EQ(steps[step][i].id, expected[i][step]) << "slot " << i << ", step " << step;
    }
  }
}

std::vector<std::byte> bytes_of_steps(CudaDevice& device, int64_t num_steps) {
  ThreadPool threads(1);
  const auto backend = make_cuda_backend(device, threads);
  const LogitTable rows = random_rows(5);
  TableModel model(*backend, rows, 3);
  const std::vector<int32_t> stops = {largest(rows[8])};
  model.load({{.token = 4, .position = 2, .num_steps = 3, .draw = kWithLogprob},
              {.token = 8, .position = 9, .num_steps = 4, .stop_ids = stops, .draw = kWithLogprob},
              {.token = 11, .position = 0, .num_steps = 2, .draw = kGreedy}});
  std::vector<std::byte> bytes;
  for (const auto& step : model.steps(num_steps)) {
    for (const DecodedToken& token : step) {
      const float numbers[] = {static_cast<float>(token.status), static_cast<float>(token.id),
                               token.logprob};
      const auto part = std::as_bytes(std::span(numbers));
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
  }
  return bytes;
}

TEST(CudaDecodeSlots, HaveTheSameBitsInEveryOrderOfThreads) {
  const auto run = [](CudaDevice& device) { return bytes_of_steps(device, 4); };
  EXPECT_FALSE(testing::same_in_every_order(run).empty());
  // A token that is none, drawn without a barrier, must not be the next one's input. Barriers of
  // the draws have tests of their own.
  const auto one_step = [](CudaDevice& device) { return bytes_of_steps(device, 1); };
  EXPECT_THAT(testing::needless_syncs(one_step, "decode_step.h"), ::testing::IsEmpty());
}

}  // namespace
}  // namespace paceline::cuda
