#include "dataset/batch_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/divide_up.h"
#include "base/error.h"
#include "dataset/random_order.h"
#include "kernels/gradients.h"

namespace paceline {
namespace {

constexpr uint64_t kShuffleStream = uint64_t{0x65706f6368} << 24;  // "epoch", which is added

void check_option(bool is_in_range, const char* name, int64_t found, const char* expected) {
  if (is_in_range) return;
  throw Error(ErrorCode::invalid, fmt::format("{}: found {}, expected {}", name, found, expected));
}

void check_options(const BatchOptions& options, int64_t epoch) {
  check_option(options.max_seq_length >= 2, "the length of a row", options.max_seq_length,
               "at least 2 tokens");
  check_option(options.batch_size >= 1, "the batch size", options.batch_size, "at least one row");
  check_option(options.micro_batch_rows >= 1, "the rows of a micro-batch", options.micro_batch_rows,
               "at least one");
  check_option(epoch >= 0 && epoch < (int64_t{1} << 24), "the epoch", epoch, "0 to 16777215");
}

void check_examples(std::span<const Example> examples, int64_t max_seq_length) {
  if (examples.empty()) throw Error(ErrorCode::invalid, "found no example to make batches of");
  for (size_t i = 0; i < examples.size(); ++i) {
    const int64_t length = examples[i].num_tokens();
    if (length >= 2 && length <= max_seq_length) continue;
    throw Error(ErrorCode::invalid,
                fmt::format("example {}: found {} tokens, expected 2 to {}, what a row holds", i,
                            length, max_seq_length));
  }
}

}  // namespace

BatchPlan::BatchPlan(std::span<const Example> examples, const BatchOptions& options, int64_t epoch)
    : examples_(examples), options_(options) {
  check_options(options, epoch);
  check_examples(examples, options.max_seq_length);
  plan_rows(epoch);
}

void BatchPlan::plan_rows(int64_t epoch) {
  const auto num_examples = static_cast<int64_t>(examples_.size());
  std::vector<int64_t> room;  // of each row
  for (const int64_t example :
       random_order(num_examples, options_.seed, kShuffleStream + static_cast<uint64_t>(epoch))) {
    const int64_t places = examples_[static_cast<size_t>(example)].num_tokens() - 1;
    size_t row = rows_.size();
    if (options_.is_packed) {
      row = rows_.size() - std::min(rows_.size(), static_cast<size_t>(kOpenRows));
      while (row < rows_.size() && room[row] < places) ++row;
    }
    if (row == rows_.size()) {
      rows_.emplace_back();
      room.push_back(options_.max_seq_length);
    }
    rows_[row].push_back(example);
    room[row] -= places;
  }
}

int64_t BatchPlan::num_steps() const { return divide_up(num_rows(), options_.batch_size); }

std::span<const PlannedRow> BatchPlan::rows(int64_t step) const {
  PL_CHECK(step >= 0 && step < num_steps(), "a step of the epoch");
  const int64_t begin = step * options_.batch_size;
  const int64_t count = std::min(options_.batch_size, num_rows() - begin);
  return std::span(rows_).subspan(static_cast<size_t>(begin), static_cast<size_t>(count));
}

int64_t BatchPlan::num_counted(int64_t step) const {
  int64_t count = 0;
  for (const PlannedRow& row : rows(step)) {
    for (const int64_t example : row)
      count += examples_[static_cast<size_t>(example)].num_counted();
  }
  return count;
}

void BatchPlan::add_example(const Example& example, float weight, int64_t sequence_length,
                            TrainBatch& batch) const {
  const std::vector<float> weights = loss_weights(example, weight);
  const auto places = std::ssize(weights);
  const int64_t length = sequence_length > 0 ? sequence_length : places;
  for (int64_t begin = 0; begin < places; begin += length) {
    const int64_t end = std::min(begin + length, places);
    std::vector<int32_t> tokens(example.tokens.begin() + begin, example.tokens.begin() + end + 1);
    if (begin > 0 && options_.first_token) tokens.front() = *options_.first_token;
    batch.add(std::move(tokens), {weights.begin() + begin, weights.begin() + end});
  }
}

std::vector<TrainBatch> BatchPlan::step(int64_t index, int64_t sequence_length) const {
  const int64_t num_tokens = num_counted(index);
  const float weight = num_tokens == 0 ? 0.0f : 1.0f / static_cast<float>(num_tokens);
  std::vector<TrainBatch> batches;
  int64_t num_rows_added = 0;
  for (const PlannedRow& row : rows(index)) {
    if (num_rows_added++ % options_.micro_batch_rows == 0) batches.emplace_back();
    TrainBatch& batch = batches.back();
    for (const int64_t i : row) {
      add_example(examples_[static_cast<size_t>(i)], weight, sequence_length, batch);
    }
    batch.pad_to_multiple(kGradientRows);
  }
  return batches;
}

StepPlace find_step(std::span<const Example> examples, const BatchOptions& options,
                    int64_t number) {
  PL_CHECK(number >= 0, "the number of a step");
  StepPlace place{.epoch = 0, .step = number};
  while (true) {
    const int64_t num_steps = BatchPlan(examples, options, place.epoch).num_steps();
    if (place.step < num_steps) return place;
    if (!options.is_packed) {  // all epochs have as many steps
      return {.epoch = place.step / num_steps, .step = place.step % num_steps};
    }
    place.step -= num_steps;
    ++place.epoch;
  }
}

std::vector<float> loss_weights(const Example& example, float weight) {
  std::vector<float> weights;
  weights.reserve(example.counts.size());
  for (size_t i = 1; i < example.counts.size(); ++i) {
    weights.push_back(example.counts[i] != 0 ? weight : 0.0f);
  }
  return weights;
}

}  // namespace paceline
