// Rows with adapters in a batch: each sequence has the bits that it has alone.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "models/pack_adapter.h"
#include "tests/expect_error.h"
#include "tests/kernels/chosen_isa.h"
#include "tests/models/packed_adapters.h"
#include "tests/models/random_adapter.h"
#include "tests/models/test_model.h"

namespace paceline::testing {
namespace {

// One adapter on everything, one in float32, one on attention alone, one on some layers' MLP.
std::vector<RandomAdapter> adapter_kinds() {
  return {{.seed = 1},
          {.seed = 2, .dtype = DType::f32, .max_rank = 40},
          {.seed = 3,
           .dtype = DType::f16,
           .adapts = [](std::string_view name) { return name.find("self_attn") != name.npos; }},
          {.seed = 4, .adapts = [](std::string_view name) {
             return name.find("layers.1.mlp.down") != name.npos ||
                    name.find("self_attn.v_proj") != name.npos;
           }}};
}

class ModelAdapters : public ::testing::TestWithParam<std::string> {
 protected:
  std::vector<RunOptions> runs() const {
    std::vector<RunOptions> all;
    for (const Isa isa : isas_to_run()) {
      all.push_back({.isa = isa, .weight_dtype = DType::bf16, .kv_dtype = DType::bf16});
    }
    all.push_back({.isa = isas_to_run().back(), .num_threads = 3});
    return all;
  }
};

TEST_P(ModelAdapters, ChunksThreadsAndBlockSizesChangeNoBit) {
  const Golden golden = read_golden(GetParam());
  for (const RunOptions& run : runs()) {
    TestModel whole(golden.directory, run);
    SCOPED_TRACE(std::string(whole.backend().name()));
    const PackedAdapters packed(whole, adapter_kinds());
    RunOptions other = run;
    other.num_threads = 2;
    other.block_size = 5;
    TestModel split(golden.directory, other);
    const std::vector<float> base = whole.logits(golden.prompt_ids);
    for (const AdapterWeights& adapter : packed.weights) {
      const auto expected = whole.logits(golden.prompt_ids, 1 << 20, &adapter);
      EXPECT_FALSE(same_bits(expected, base));
      EXPECT_TRUE(same_bits(whole.logits(golden.prompt_ids, 7, &adapter), expected));
      EXPECT_TRUE(same_bits(split.logits(golden.prompt_ids, 13, &adapter), expected));
    }
  }
}

TEST_P(ModelAdapters, AMixedBatchComputesEachSequenceAsIfAlone) {
  const Golden golden = read_golden(GetParam());
  const auto vocab = static_cast<size_t>(golden.vocab_size);
  constexpr size_t kSequences = 9;
  for (const RunOptions& run : runs()) {
    TestModel model(golden.directory, run);
    SCOPED_TRACE(std::string(model.backend().name()));
    const PackedAdapters packed(model, adapter_kinds());
    // Every adapter twice and the base once, of the same tokens.
    const std::span<const int32_t> ids = std::span(golden.prompt_ids).first(40);
    std::vector<const AdapterWeights*> adapters(kSequences, nullptr);
    std::vector<std::vector<float>> alone, together(kSequences);
    std::vector<SequenceBlocks> blocks;
    for (size_t i = 0; i < kSequences; ++i) {
      if (i + 1 < kSequences) adapters[i] = &packed.weights[i % packed.weights.size()];
      alone.push_back(model.logits(ids, 1 << 20, adapters[i]));
      blocks.emplace_back(model.cache());
    }
    uint64_t draw = 0;
    while (std::ranges::any_of(
        together, [&](const auto& some) { return some.size() < ids.size() * vocab; })) {
      std::vector<TestModel::Slice> slices;
      std::vector<size_t> owners;
      const auto turn = static_cast<size_t>(uniform_draw(12, draw++) * kSequences);
      for (size_t k = 0; k < kSequences; ++k) {
        const size_t i = (turn + k) % kSequences;  // batches have any order
        const size_t done = together[i].size() / vocab;
        const size_t count =
            std::min(ids.size() - done, static_cast<size_t>(uniform_draw(11, draw++) * 12));
        if (count == 0) continue;
        const auto some = ids.subspan(done, count);
        slices.push_back({.blocks = &blocks[i],
                          .tokens = {some.begin(), some.end()},
                          .first_position = static_cast<int64_t>(done),
                          .adapter = adapters[i]});
        owners.push_back(i);
      }
      if (slices.empty()) continue;
      const std::vector<float> logits = model.forward(slices);
      std::span<const float> rest = logits;
      for (size_t s = 0; s < slices.size(); ++s) {
        const auto mine = rest.first(slices[s].tokens.size() * vocab);
        together[owners[s]].insert(together[owners[s]].end(), mine.begin(), mine.end());
        rest = rest.subspan(mine.size());
      }
    }
    for (size_t i = 0; i < kSequences; ++i) EXPECT_TRUE(same_bits(together[i], alone[i])) << i;
  }
}

TEST_P(ModelAdapters, WithoutAnyBTheyHaveTheBitsOfTheBase) {
  const Golden golden = read_golden(GetParam());
  TestModel model(golden.directory, {.isa = isas_to_run().back(), .weight_dtype = DType::bf16});
  Memory memory;
  const Adapter zero = random_adapter(model.config(), {.b_size = 0.0f}, memory);
  const AdapterWeights packed = pack_adapter(zero, model.config(), model.backend());
  EXPECT_EQ(packed.size_bytes(), 0u);
  EXPECT_TRUE(
      same_bits(model.logits(golden.prompt_ids, 7, &packed), model.logits(golden.prompt_ids)));
}

INSTANTIATE_TEST_SUITE_P(all, ModelAdapters,
                         ::testing::Values("llama_scaled_tied", "qwen2_tied", "gemma2_odd",
                                           "gemma3_text_pattern2", "mistral_window",
                                           "qwen3_moe_tied", "qwen2_moe_sparse_step",
                                           "granitemoeshared_tied_stacked"),
                         [](const auto& golden) { return golden.param; });

TEST(PackAdapter, StacksThePairsOfAProductAndCountsItsBytes) {
  const Golden golden = read_golden("llama_scaled_tied");
  TestModel model(golden.directory, {});
  Memory memory;
  const Adapter adapter = random_adapter(model.config(), {}, memory);
  const AdapterWeights packed = pack_adapter(adapter, model.config(), model.backend());
  const auto layers = static_cast<size_t>(model.config().num_layers());
  ASSERT_EQ(packed.blocks.size(), layers);
  EXPECT_EQ(packed.matrices.size(), layers * (4 + 7));  // A of four products, B of seven modules
  size_t bytes = 0;
  for (const auto& matrix : packed.matrices) bytes += size_t(matrix->bytes());
  EXPECT_EQ(packed.size_bytes(), bytes);
  EXPECT_EQ(packed.max_ranks(), kPanelWidth);
  const auto& qkv = packed.blocks[0][static_cast<size_t>(BlockProduct::qkv)];
  ASSERT_EQ(qkv.size(), 3u);
  EXPECT_EQ(qkv[0].a, qkv[2].a);
  EXPECT_EQ(qkv[2].first_rank, qkv[0].b->k + qkv[1].b->k);
  EXPECT_EQ(qkv[0].a->n, qkv[2].first_rank + qkv[2].b->k);
}

Adapter one_pair(const std::string& module, Extents a, Extents b, Memory& memory) {
  std::vector<LoraPair> pairs;
  pairs.push_back({.module = module,
                   .a = allocate_tensor(memory, DType::f32, a),
                   .b = allocate_tensor(memory, DType::f32, b),
                   .alpha = 1,
                   .scale = 1});
  return Adapter("", std::move(pairs));
}

TEST(PackAdapter, RefusesModulesThatItCannotServe) {
  const Golden golden = read_golden("llama_scaled_tied");
  TestModel model(golden.directory, {});
  Memory memory;
  const DecoderConfig& config = model.config();
  const int64_t hidden = config.hidden_size;
  const auto refuse = [&](ErrorCode code, const std::vector<std::string>& parts,
                          const std::string& module, Extents a, Extents b) {
    SCOPED_TRACE(module);
    const Adapter adapter = one_pair(module, a, b, memory);
    expect_error(code, parts, [&] { pack_adapter(adapter, config, model.backend()); });
  };
  refuse(ErrorCode::unsupported, {"lm_head", "projections of the layers"}, "lm_head", {2, hidden},
         {config.vocab_size, 2});
  refuse(ErrorCode::unsupported, {"embed_tokens"}, "embed_tokens", {2, hidden},
         {config.vocab_size, 2});
  refuse(ErrorCode::invalid, {"layers.0.self_attn.x_proj", "lacks"}, "layers.0.self_attn.x_proj",
         {2, hidden}, {hidden, 2});
  refuse(ErrorCode::invalid, {"layers.99.", "lacks"}, "layers.99.self_attn.q_proj", {2, hidden},
         {hidden, 2});
  refuse(ErrorCode::invalid, {"layers.0.mlp.down_proj", "expected [rank, "},
         "layers.0.mlp.down_proj", {2, config.intermediate_size + 1}, {hidden, 2});
  refuse(ErrorCode::invalid, {"layers.0.mlp.up_proj", "expected [rank, "}, "layers.0.mlp.up_proj",
         {2, hidden}, {config.intermediate_size, 3});
}

}  // namespace
}  // namespace paceline::testing
