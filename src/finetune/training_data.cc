#include "finetune/training_data.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/error.h"
#include "dataset/dataset_files.h"
#include "dataset/length_stage.h"
#include "dataset/split.h"

namespace paceline {
namespace {

std::optional<TokenId> first_token(const TrainOptions& options, const Tokenizer& tokenizer) {
  if (options.first_token.empty()) return std::nullopt;
  const auto id = tokenizer.token_id(options.first_token);
  if (id) return *id;
  throw error_of(ErrorCode::invalid,
                 "--first-token: found \"{}\", expected a token of the vocabulary",
                 options.first_token);
}

}  // namespace

TrainingData read_training_data(const TrainOptions& options, const LoadedModel& model,
                                const std::optional<std::string>& now) {
  if (!model.tokenizer) {
    throw Error(ErrorCode::not_found, model.path.string() + ": has no tokenizer.json");
  }
  const DatasetModel texts{
      .tokenizer = *model.tokenizer,
      .chat_template = model.chat.chat_template ? &*model.chat.chat_template : nullptr,
      .eos = end_of_text(*model.tokenizer)};
  DatasetOptions reading{.loss_tokens = options.loss_tokens,
                         .max_seq_length = options.max_seq_length,
                         .now = now,
                         .first_token = first_token(options, *model.tokenizer)};
  const DatasetFiles files = find_dataset_files(options.data);
  Dataset train = read_dataset(files.train, texts, reading);
  reading.now = train.report.now;
  TrainingData data;
  data.report = train.report;
  data.first_token = reading.first_token;
  data.notes = dataset_warnings(train.report);
  std::optional<std::filesystem::path> validation = files.valid;
  if (!options.validation_data.empty()) validation = options.validation_data;
  const double fraction = options.validation_fraction.value_or(0.05);
  if (validation) {
    Dataset valid = read_dataset(*validation, texts, reading);
    for (std::string& note : dataset_warnings(valid.report)) data.notes.push_back(std::move(note));
    data.train = std::move(train.examples);
    data.validation = std::move(valid.examples);
  } else if (fraction > 0 && train.examples.size() > 1) {
    ExampleSplit split = split_examples(std::move(train.examples), fraction, options.seed);
    data.train = std::move(split.train);
    data.validation = std::move(split.valid);
  } else {
    data.train = std::move(train.examples);
  }
  return data;
}

Hash128 digest_of(const TrainingData& data) {
  std::vector<uint64_t> words;
  const auto add = [&](std::span<const std::byte> bytes) {
    const Hash128 hash = siphash128_bytes(kPublicSipKey, bytes);
    words.push_back(hash.low);
    words.push_back(hash.high);
  };
  for (const auto* examples : {&data.train, &data.validation}) {
    words.push_back(examples->size());
    for (const Example& example : *examples) {
      add(std::as_bytes(std::span(example.tokens)));
      add(std::as_bytes(std::span(example.counts)));
    }
  }
  return siphash128(kPublicSipKey, words);
}

BatchOptions batch_options(const TrainOptions& options, const TrainingData& data) {
  return {.max_seq_length = options.max_seq_length,
          .batch_size = options.batch_size * options.accumulation_steps,
          .micro_batch_rows = options.batch_size,
          .is_packed = options.packing,
          .seed = options.seed,
          .first_token = data.first_token};
}

int64_t num_run_steps(const TrainOptions& options, const TrainingData& data) {
  if (!options.num_epochs) return options.num_steps;
  const BatchOptions batches = batch_options(options, data);
  int64_t num_steps = 0;
  double left = *options.num_epochs;
  for (int64_t epoch = 0; left > 0; ++epoch, left -= 1) {
    const int64_t of_epoch = BatchPlan(data.train, batches, epoch).num_steps();
    num_steps += left >= 1 ? of_epoch
                           : static_cast<int64_t>(std::ceil(left * static_cast<double>(of_epoch)));
  }
  return num_steps;
}

TrainBatches::TrainBatches(const std::vector<Example>& examples, const BatchOptions& batches,
                           const TrainOptions& options)
    : examples_(examples),
      options_(batches),
      stages_(options.sequence_lengths),
      num_steps_(options.num_steps),
      plan_(std::make_unique<BatchPlan>(examples, batches, 0)) {}

void TrainBatches::go_to(int64_t number) {
  PL_CHECK(number >= first_step_, "steps come in turn");
  while (number - first_step_ >= plan_->num_steps()) {
    first_step_ += plan_->num_steps();
    plan_ = std::make_unique<BatchPlan>(examples_, options_, ++epoch_);
  }
}

std::vector<TrainBatch> TrainBatches::step(int64_t number) {
  go_to(number);
  return plan_->step(number - first_step_, sequence_length_at(stages_, number, num_steps_));
}

std::vector<TrainBatch> validation_batches(const TrainingData& data, const TrainOptions& options) {
  const std::vector<Example>& examples = data.validation;
  std::vector<TrainBatch> batches;
  if (examples.empty() || options.validation_batches == 0) return batches;
  BatchOptions planned = batch_options(options, data);
  planned.batch_size = options.batch_size;
  planned.seed = 0;  // the same ones in every run
  const BatchPlan plan(examples, planned, 0);
  int64_t count = plan.num_steps();
  if (options.validation_batches > 0) count = std::min(count, options.validation_batches);
  for (int64_t step = 0; step < count; ++step) {
    for (TrainBatch& batch : plan.step(step)) batches.push_back(std::move(batch));
  }
  return batches;
}

}  // namespace paceline
