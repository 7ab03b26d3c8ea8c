#include "cli/train_data.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/error.h"
#include "cli/usage_error.h"
#include "cli/words.h"
#include "dataset/dataset_files.h"
#include "dataset/split.h"

namespace paceline {
namespace {

LossTokens loss_tokens(const TrainChoice& choice) {
  if (choice.loss_on == "assistant") return LossTokens::assistant_turns;
  if (choice.loss_on == "completion" || choice.mask_prompt) return LossTokens::completion;
  return LossTokens::all;
}

std::optional<TokenId> first_token(const TrainChoice& choice, const Tokenizer& tokenizer) {
  if (choice.first_token.empty()) return std::nullopt;
  const auto id = tokenizer.token_id(choice.first_token);
  if (id) return *id;
  throw error_of(ErrorCode::invalid,
                 "--first-token: found \"{}\", expected a token of the vocabulary",
                 choice.first_token);
}

std::optional<LengthStage> parse_stage(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto length = parse_number<int64_t>(text.substr(0, colon));
  const auto until = parse_number<double>(text.substr(colon + 1));
  if (!length || !until) return std::nullopt;
  return LengthStage{.length = *length, .until = *until};
}

}  // namespace

TrainData read_train_data(const TrainChoice& choice, const LoadedModel& model,
                          const std::optional<std::string>& now) {
  if (!model.tokenizer) {
    throw Error(ErrorCode::not_found, model.path.string() + ": has no tokenizer.json");
  }
  const DatasetModel texts{
      .tokenizer = *model.tokenizer,
      .chat_template = model.chat.chat_template ? &*model.chat.chat_template : nullptr,
      .eos = end_of_text(*model.tokenizer)};
  DatasetOptions options{.loss_tokens = loss_tokens(choice),
                         .max_seq_length = choice.max_seq_length,
                         .now = now,
                         .first_token = first_token(choice, *model.tokenizer)};
  const DatasetFiles files = find_dataset_files(choice.data);
  Dataset train = read_dataset(files.train, texts, options);
  options.now = train.report.now;
  TrainData data;
  data.report = train.report;
  data.first_token = options.first_token;
  data.notes = dataset_warnings(train.report);
  std::optional<std::filesystem::path> validation = files.valid;
  if (!choice.validation_data.empty()) validation = choice.validation_data;
  const double fraction = choice.validation_fraction.value_or(0.05);
  if (validation) {
    Dataset valid = read_dataset(*validation, texts, options);
    for (std::string& note : dataset_warnings(valid.report)) data.notes.push_back(std::move(note));
    data.train = std::move(train.examples);
    data.validation = std::move(valid.examples);
  } else if (fraction > 0 && train.examples.size() > 1) {
    ExampleSplit split = split_examples(std::move(train.examples), fraction, choice.seed);
    data.train = std::move(split.train);
    data.validation = std::move(split.valid);
  } else {
    data.train = std::move(train.examples);
  }
  return data;
}

Hash128 digest_of(const TrainData& data) {
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

std::vector<LengthStage> parse_length_stages(std::string_view text, std::string_view where) {
  std::vector<LengthStage> stages;
  LengthStage last;
  while (true) {
    const std::string_view one = text.substr(0, text.find(','));
    const auto stage = parse_stage(one);
    const bool is_valid = stage && stage->length >= 1 && stage->length > last.length &&
                          stage->until > last.until && stage->until <= 1;
    if (!is_valid) {
      throw UsageError(
          "{}: found \"{}\", expected LENGTH:PART,... with rising lengths and parts of "
          "the run up to 1, as 256:0.45,512:0.85",
          where, one);
    }
    stages.push_back(*stage);
    last = *stage;
    if (one.size() == text.size()) return stages;
    text.remove_prefix(one.size() + 1);
  }
}

std::vector<LengthStage> length_stages(const TrainChoice& choice) {
  if (choice.sequence_lengths.empty()) return {};
  return parse_length_stages(choice.sequence_lengths, "--sequence-lengths");
}

BatchOptions batch_options(const TrainChoice& choice, const TrainData& data) {
  return {.max_seq_length = choice.max_seq_length,
          .batch_size = choice.batch_size * choice.accumulation_steps,
          .micro_batch_rows = choice.batch_size,
          .is_packed = choice.is_packed,
          .seed = choice.seed,
          .first_token = data.first_token};
}

int64_t num_run_steps(const TrainChoice& choice, const TrainData& data) {
  if (!choice.num_epochs) return choice.num_steps;
  const BatchOptions options = batch_options(choice, data);
  int64_t num_steps = 0;
  double left = *choice.num_epochs;
  for (int64_t epoch = 0; left > 0; ++epoch, left -= 1) {
    const int64_t of_epoch = BatchPlan(data.train, options, epoch).num_steps();
    num_steps += left >= 1 ? of_epoch
                           : static_cast<int64_t>(std::ceil(left * static_cast<double>(of_epoch)));
  }
  return num_steps;
}

TrainBatches::TrainBatches(const std::vector<Example>& examples, const BatchOptions& options,
                           const TrainChoice& choice)
    : examples_(examples),
      options_(options),
      stages_(length_stages(choice)),
      num_steps_(choice.num_steps),
      plan_(std::make_unique<BatchPlan>(examples, options, 0)) {}

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

std::vector<TrainBatch> validation_batches(const TrainData& data, const TrainChoice& choice) {
  const std::vector<Example>& examples = data.validation;
  std::vector<TrainBatch> batches;
  if (examples.empty() || choice.validation_batches == 0) return batches;
  BatchOptions options = batch_options(choice, data);
  options.batch_size = choice.batch_size;
  options.seed = 0;  // the same ones in every run
  const BatchPlan plan(examples, options, 0);
  int64_t count = plan.num_steps();
  if (choice.validation_batches > 0) count = std::min(count, choice.validation_batches);
  for (int64_t step = 0; step < count; ++step) {
    for (TrainBatch& batch : plan.step(step)) batches.push_back(std::move(batch));
  }
  return batches;
}

}  // namespace paceline
