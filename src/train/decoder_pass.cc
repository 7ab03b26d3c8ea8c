#include "train/decoder_pass.h"

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "autodiff/transforms.h"
#include "base/error.h"
#include "kernels/backend.h"
#include "train/head_loss.h"
#include "train/mamba1_operation.h"
#include "train/mixer_operation.h"
#include "train/mixture_operation.h"
#include "train/mlp_operation.h"

namespace paceline {

using autodiff::Array;
using autodiff::Arrays;

namespace {

int64_t products_width(const Mixer& mixer) {
  const int64_t kept = std::visit(
      [&]<class Part>(const Part& part) -> int64_t {
        if constexpr (HasOwnWeights<Part>) return part.kept_width();
        if constexpr (std::is_same_v<Part, SelfAttention>) {
          const AttentionConfig& config = part.config();
          return config.has_gates() ? config.num_heads * config.head_dim : 0;
        }
        return 0;
      },
      mixer.part());
  return mixer.products().front()->out_features() + kept;
}

// About what gradients read of a row's activations in a block: the outputs of its operations.
// Nothing where that depends on the row's experts.
std::optional<int64_t> activation_bytes(const DecoderBlock& block, int64_t hidden_size) {
  constexpr int64_t kHiddenOutputs = 3;  // of a branch: its norm, what it adds and the sum
  int64_t width = 0;
  for (const BlockBranch& branch : block.branches().all()) {
    width += kHiddenOutputs * hidden_size;
    if (branch.mixer != nullptr) width += products_width(*branch.mixer);
    if (branch.feed_forward == nullptr) continue;
    const GatedMlp* const mlp = branch.feed_forward->dense();
    if (mlp == nullptr) return std::nullopt;
    width += mlp->gate_up().out_features() + mlp->config().intermediate_size;
  }
  return width * int64_t{sizeof(float)};
}

int64_t most_state_elements(const DecoderConfig& config) {
  int64_t most = 0;
  for (int64_t i = 0; i < config.num_layers(); ++i) {
    const LayerStateElements elements = state_elements(config, i);
    most = std::max(most, elements.state() + elements.open_rows());
  }
  return most;
}

}  // namespace

// What all blocks share.
struct DecoderPass::Prepared {
  std::vector<OwnedTensor> angles;
  std::vector<RotaryTables> tables;  // by rope
  std::vector<float> query_factors;
  std::unique_ptr<SequenceStore> store;
  std::unique_ptr<SequenceStates> states;  // where layers have some
  Dropout dropout;
};

DecoderPass::DecoderPass(Backend& backend, ThreadPool& threads, const Decoder& decoder,
                         const DecoderTraining& training, const PassOptions& options)
    : backend_(backend),
      context_{.memory = backend.memory(), .pool = &threads},
      decoder_(decoder),
      training_(training),
      options_(options) {
  PL_CHECK(training.blocks.size() == decoder.blocks().size(), "an entry for each block");
  expect_trainable(decoder, backend);
  if (backend.has_host_memory()) return;
  context_.add = [&backend](const Tensor& x, const Tensor& y, const Tensor& out) {
    backend.add(x, y, out);
  };
}

DecoderPass::~DecoderPass() = default;

std::unique_ptr<DecoderPass::Prepared> DecoderPass::prepare(const TrainBatch& batch) const {
  auto prepared = std::make_unique<Prepared>();
  std::vector<int32_t> negated;
  for (const int32_t position : batch.positions) negated.push_back(-position);
  std::vector<StretchedRows> stretched;
  for (const SequenceRows& rows : batch.sequences) {
    const int64_t length = decoder_.config().stretched_length(rows.num_rows);
    if (length > 0) stretched.push_back({rows.first_row, rows.num_rows, length});
  }
  for (const Rope& rope : decoder_.ropes()) {
    const auto table = [&](const std::vector<int32_t>& positions) {
      OwnedTensor& owned = prepared->angles.emplace_back(allocate_tensor(
          backend_.memory(), DType::f32, {batch.num_rows(), rope.num_frequencies(), 2}));
      rope.write_table(backend_, positions, stretched, owned.view);
      return owned.view;
    };
    const Tensor forward = table(batch.positions);
    prepared->tables.push_back({.forward = forward, .backward = table(negated)});
  }
  const DecoderConfig& config = decoder_.config();
  prepared->query_factors = config.query_factors(batch.positions);
  prepared->store = std::make_unique<SequenceStore>(
      batch.sequences, config.num_kv_heads, config.head_dim, options_.kv_dtype, backend_.memory());
  if (config.has_states()) {
    prepared->states = std::make_unique<SequenceStates>(
        batch.sequences, most_state_elements(config), backend_.memory());
  }
  return prepared;
}

Array DecoderPass::embed(const TrainBatch& batch) const {
  Array x(context_, DType::f32, {batch.num_rows(), decoder_.config().hidden_size},
          Contents::undefined);
  backend_.embedding(decoder_.embedding(), batch.tokens, decoder_.config().embedding_scale,
                     x.writable());
  if (const PositionEmbedding* const positions = decoder_.positions()) {
    Array added(context_, DType::f32, x.shape(), Contents::undefined);
    positions->add_forward(backend_, batch.positions, x.writable(), added.writable());
  }
  return x;
}

Array DecoderPass::feed_forward(const Prepared& prepared, const FeedForward& layer,
                                const BlockTraining& trained, const Array& x,
                                Elements elements) const {
  if (layer.mixture() != nullptr) {
    return apply_mixture(backend_, *layer.mixture(), trained.mixture, prepared.dropout, x);
  }
  const GatedMlp& mlp = *layer.dense();
  const Array inner = apply_mlp_inner(backend_, mlp, trained.gate_up, prepared.dropout, x);
  return apply_linear(backend_, mlp.down(), trained.down, prepared.dropout, inner, elements);
}

Array DecoderPass::mixer(const Prepared& prepared, size_t index, const Mixer& mixer, const Array& x,
                         Elements elements) const {
  const BlockTraining& trained = training_.blocks[index];
  const auto [first, last] = mixer.products();
  const Array input = apply_linear(backend_, *first, trained.qkv, prepared.dropout, x);
  return apply_linear(backend_, *last, trained.output, prepared.dropout,
                      mix(prepared, index, mixer, input), elements);
}

// What a mixer does between its products.
Array DecoderPass::mix(const Prepared& prepared, size_t index, const Mixer& mixer,
                       const Array& x) const {
  const DecoderConfig& config = decoder_.config();
  const int rope = config.layers[index].rope_index;
  const BlockTraining& trained = training_.blocks[index];
  const auto states = [&] {
    return LayerStates{*prepared.states, state_elements(config, static_cast<int64_t>(index))};
  };
  const auto one = [&]<class Part>(const Part& part) -> Array {
    if constexpr (HasMixGradient<Part>) {
      return apply_mix(backend_, part, states(), trained.own_weights, x);
    } else if constexpr (std::is_same_v<Part, Mamba1>) {
      return apply_mamba1(backend_, part,
                          {.parts = trained.scan_parts,
                           .steps = trained.scan_steps,
                           .own_weights = trained.own_weights},
                          prepared.dropout, states(), x);
    } else if constexpr (std::is_same_v<Part, LatentAttention>) {
      PL_CHECK(false, "latent attention isn't trained");
    } else {
      const PositionTables positions = {
          .rope = rope == kNoRope ? nullptr : &prepared.tables[static_cast<size_t>(rope)],
          .query_factors = prepared.query_factors};
      return apply_attention(backend_, part, trained.head_norms, positions, *prepared.store, x);
    }
  };
  return std::visit(one, mixer.part());
}

// Computes a block on arrays. What a block reads is normalised by itself, not by the one before it,
// so that the residual stream is all that is kept between most blocks.
class DecoderPass::BlockPass {
 public:
  using Value = Array;

  // `state` has the residual stream and, where the block's first branch shares its input, that.
  // `elements` of what the block leaves in the residual stream.
  BlockPass(const DecoderPass& pass, const Prepared& prepared, size_t index, const Arrays& state,
            Elements elements)
      : pass_(pass), prepared_(prepared), index_(index), elements_(elements), residual_(state[0]) {
    if (state.size() > 1) input_ = state[1];
  }

  Array read(const BlockBranch& branch) {
    if (branch.input == BranchInput::shared) return input_;
    if (branch.input != BranchInput::beside) found_ = residual_;
    input_ = branch.before == nullptr
                 ? found_
                 : apply_norm(pass_.backend_, *branch.before, of(branch).before, found_);
    return input_;
  }

  Array run(const BlockBranch& branch, const Array& input, const BlockBranch* next) {
    // The gradient of a norm behind it reads it.
    const Elements elements = branch.after != nullptr ? Elements::computed : elements_of(next);
    if (branch.mixer != nullptr) {
      return pass_.mixer(prepared_, index_, *branch.mixer, input, elements);
    }
    return pass_.feed_forward(prepared_, *branch.feed_forward, trained(), input, elements);
  }

  void add(const BlockBranch& branch, const Array& output, const BlockBranch* next) {
    const Array added = branch.after == nullptr
                            ? output
                            : apply_norm(pass_.backend_, *branch.after, of(branch).after, output,
                                         elements_of(next));
    residual_ = apply_sum(pass_.backend_, residual_, added, branch.scale, elements_of(next));
  }

  // As of the constructor.
  Arrays state(bool shares_input) const {
    return shares_input ? Arrays{residual_, input_} : Arrays{residual_};
  }

 private:
  struct BranchNorms {
    const NormGradient& before;
    const NormGradient& after;
  };

  const BlockTraining& trained() const { return pass_.training_.blocks[index_]; }
  BranchNorms of(const BlockBranch& branch) const {
    if (branch.mixer != nullptr) return {trained().before_mixer, trained().after_mixer};
    return {trained().before_mlp, trained().after_mlp};
  }
  Elements elements_of(const BlockBranch* next) const {
    return next == nullptr ? elements_ : Elements::computed;
  }

  const DecoderPass& pass_;
  const Prepared& prepared_;
  size_t index_;
  Elements elements_;
  Array residual_;
  Array found_;  // the residual stream as the branch before found it
  Array input_;  // what the branch before read
};

Arrays DecoderPass::block(const Prepared& prepared, size_t index, const Arrays& state,
                          Elements elements) const {
  const std::span<const DecoderBlock> blocks = decoder_.blocks();
  const size_t next = index + 1;
  const bool shares_input =
      next < blocks.size() && blocks[next].branches().front().input == BranchInput::shared;
  BlockPass steps(*this, prepared, index, state, elements);
  walk_block(blocks[index].branches().all(), nullptr, steps);
  return steps.state(shares_input);
}

size_t DecoderPass::num_checkpoints(int64_t rows) const {
  if (options_.kept_bytes == kAllActivations) return 0;
  // The last block's activations would be computed again at once.
  size_t count = decoder_.blocks().size() - 1;
  for (int64_t kept = 0; count > 0; --count) {
    const DecoderBlock& block = decoder_.blocks()[count - 1];
    const auto bytes = activation_bytes(block, decoder_.config().hidden_size);
    if (!bytes) break;
    kept += rows * *bytes;
    if (kept > options_.kept_bytes) break;
  }
  return count;
}

Array DecoderPass::all_blocks(const Prepared& prepared, const Array& x) const {
  const size_t checkpoints = num_checkpoints(x.shape()[0]);
  Arrays state = {x};
  for (size_t i = 0; i < decoder_.blocks().size(); ++i) {
    if (i >= checkpoints) {
      state = block(prepared, i, state, Elements::computed);
      continue;
    }
    const auto one = autodiff::checkpoint([this, &prepared, i](const Arrays& inputs) {
      const bool is_again = inputs[0].traced() != nullptr;
      return block(prepared, i, inputs, is_again ? Elements::none : Elements::computed);
    });
    state = one(state);
  }
  return state.front();
}

void DecoderPass::run(const TrainBatch& batch, const Dropout& dropout, std::vector<float>& losses) {
  const auto prepared = prepare(batch);
  prepared->dropout = dropout;
  const auto loss = [&](const Arrays& inputs) {
    return Arrays{apply_head_loss(backend_, decoder_, training_, batch, losses,
                                  all_blocks(*prepared, inputs[0]))};
  };
  Array one(context_, DType::f32, Extents{}, Contents::undefined);
  backend_.write(std::array{1.0f}, one.writable());
  const autodiff::Vjp pulled = autodiff::vjp(loss, {embed(batch)}, {one});
  if (!training_.embedding) return;
  backend_.gradients().embedding_gradient(batch.tokens, decoder_.config().embedding_scale,
                                          pulled.gradients[0].tensor(), *training_.embedding);
}

void DecoderPass::evaluate(const TrainBatch& batch, std::vector<float>& losses) {
  apply_head_loss(backend_, decoder_, training_, batch, losses, states(batch));
}

Array DecoderPass::states(const TrainBatch& batch) {
  const auto prepared = prepare(batch);
  return all_blocks(*prepared, embed(batch));
}

}  // namespace paceline
