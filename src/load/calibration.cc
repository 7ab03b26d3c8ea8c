#include "load/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/system_memory.h"
#include "engine/engine.h"
#include "engine/run_alone.h"
#include "kernels/backend.h"
#include "kernels/gradients.h"
#include "load/loaded_model.h"
#include "models/block_projections.h"
#include "models/decoder.h"
#include "runner/model_runner.h"
#include "weights/mlx_recipe.h"
#include "weights/weight_reader.h"

namespace paceline {

// Sums of x^T x, by place.
class Calibration::Sums final : public InputObserver {
 public:
  Sums(Backend& backend, size_t head_block, Memory& memory)
      : backend_(backend), head_block_(head_block), memory_(memory) {}

  void observe(size_t block, BlockProduct product, const Tensor& x) override {
    add({block, product}, x);
  }
  void observe_head(const Tensor& x) override { add({head_block_, BlockProduct::output}, x); }

  const Tensor* find(const Place& place) const {
    const auto at = sums_.find(place);
    return at == sums_.end() ? nullptr : &at->second.view;
  }
  size_t head_block() const { return head_block_; }

 private:
  void add(const Place& place, const Tensor& x) {
    auto at = sums_.find(place);
    if (at == sums_.end()) {
      const int64_t length = x.size(1);
      check_room(length);
      at = sums_.emplace(place, allocate_tensor(memory_, DType::f32, {length, length})).first;
      std::fill_n(at->second.view.elements<float>(), length * length, 0.0f);
    }
    backend_.gradients().matmul_weight_gradient(x, x, OperandRounding::none, at->second.view);
  }

  static void check_room(int64_t length) {
    const int64_t bytes = length * length * static_cast<int64_t>(sizeof(float));
    const int64_t free = system_memory().free;
    if (bytes <= free / 2) return;
    throw Error(ErrorCode::exhausted,
                fmt::format("calibration: sums of {} x {} inputs need {} bytes, of which {} are "
                            "free; quantise without --calibrate, or on a machine with more memory",
                            length, length, bytes, free));
  }

  Backend& backend_;
  size_t head_block_;
  Memory& memory_;
  std::map<Place, OwnedTensor> sums_;
};

namespace {

// What texts of the model begin with; nothing: the tokenizer names no such token.
std::optional<TokenId> first_token(const Tokenizer& tokenizer) {
  for (const auto id : {tokenizer.bos_token(), tokenizer.token_id("<|endoftext|>")}) {
    if (id) return id;
  }
  return std::nullopt;
}

}  // namespace

Calibration::Calibration(const CalibrationOptions& options, ThreadPool& threads)
    : threads_(threads) {
  constexpr int64_t kWindow = 1024, kFewestTokens = 2;
  const auto model = load_model({.model = options.model.string(),
                                 .enable_lora = true,
                                 .device = "cpu",
                                 .num_threads = options.num_threads});
  if (!model->tokenizer) {
    throw error_of(ErrorCode::not_found, "{}: has no tokenizer for the calibration's text",
                   options.model.string());
  }
  std::vector<TokenId> tokens = model->tokenizer->encode(options.text);
  if (std::ssize(tokens) < kFewestTokens) {
    throw error_of(ErrorCode::invalid, "the calibration's text has {} tokens, expected {} or more",
                   tokens.size(), kFewestTokens);
  }
  tokens.resize(static_cast<size_t>(std::min(std::ssize(tokens), options.max_tokens)));
  config_ = model->decoder->config();
  has_own_head_ = model->decoder->has_own_head();
  sums_ = std::make_unique<Sums>(*model->backend, model->decoder->blocks().size(), memory_);
  model->runner->set_observer(*sums_);
  // Models attend much to what stands first, so every window begins as a text does.
  const auto first = first_token(*model->tokenizer);
  const auto window =
      static_cast<size_t>(std::min(kWindow, config_.max_position) - (first ? 1 : 0));
  for (size_t begin = 0; begin + kFewestTokens <= tokens.size(); begin += window) {
    const size_t end = std::min(begin + window, tokens.size());
    GenerateRequest request{.max_tokens = 0, .score_from = 1};
    if (first) request.prompt.push_back(*first);
    request.prompt.insert(request.prompt.end(), tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                          tokens.begin() + static_cast<std::ptrdiff_t>(end));
    request.prefix = {.read = false, .write = PrefixUse::Write::none};
    run_alone(*model->engine, std::move(request));
    options.progress(end, tokens.size());
  }
}

Calibration::~Calibration() = default;

const Tensor* Calibration::find_sum(std::string_view name) const {
  constexpr std::string_view kKind = ".weight";
  if (!name.ends_with(kKind) || is_outside_the_decoder(name)) return nullptr;
  name.remove_suffix(kKind.size());
  const bool is_embedding = name.ends_with("embed_tokens") && !has_own_head_;
  if (is_embedding || name.ends_with("lm_head")) {
    return sums_->find({sums_->head_block(), BlockProduct::output});
  }
  const auto layer = layer_of(name);
  if (!layer) return nullptr;
  const std::string mark = fmt::format("layers.{}.", *layer);
  const size_t at = name.find(mark);
  if (at == name.npos) return nullptr;
  const auto found = find_stored_projection(config_, *layer, name.substr(at + mark.size()));
  if (!found || found->projection.expert != kNoExpert) return nullptr;
  return sums_->find({static_cast<size_t>(found->layer), found->projection.product});
}

std::vector<float> Calibration::importance(std::string_view name, int64_t length) const {
  const Tensor* const sum = find_sum(name);
  return sum == nullptr || sum->size(0) != length ? std::vector<float>() : input_importance(*sum);
}

const ErrorFeedback* Calibration::feedback(std::string_view name, int64_t length) {
  const Tensor* const sum = find_sum(name);
  if (sum == nullptr || sum->size(0) != length) return nullptr;
  if (sum != prepared_) {
    feedback_.reset();
    feedback_ = std::make_unique<ErrorFeedback>(*sum, name, threads_);
    prepared_ = sum;
  }
  return feedback_.get();
}

}  // namespace paceline
