// What a fused model's files hold, for plain and packed bases and each form of the result.
#include "load/fuse_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "adapters/pair_delta.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "base/random.h"
#include "load/loaded_model.h"
#include "load/model_adapter_base.h"
#include "load/stored_model.h"
#include "load/weight_stack.h"
#include "models/decoder.h"
#include "tests/expect_error.h"
#include "tests/source_path.h"
#include "tests/test_directory.h"
#include "weights/affine_quantizer.h"
#include "weights/dequantize.h"
#include "weights/weight_reader.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

const std::string kPlainBase = "tests/goldens/models/llama_plain";
const std::string kPackedBase = "tests/goldens/mlx/model";

// A model as it is read, and as it is stored.
struct OpenModel {
  explicit OpenModel(const fs::path& path) : source(path), stored(open_checkpoint(path)) {
    const std::string where = (path / "config.json").string();
    config = parse_json(read_text_file(where, 1 << 20), where);
    stack = std::make_unique<WeightStack>(
        open_checkpoint(path),
        WeightStack::Options{.config = config,
                             .where = where,
                             .published = PublishedQuantisation::find(ModelFiles(path))},
        memory, threads);
  }
  const std::vector<CheckpointEntry>& entries() const { return stack->top().entries(); }
  // In float32, packed ones dequantised.
  std::vector<float> values(const CheckpointEntry& entry) {
    std::vector<float> numbers(1);
    for (const int64_t size : entry.shape) numbers.resize(numbers.size() * size_t(size));
    copy_elements(stack->top().read(entry.name, entry.shape),
                  Tensor(numbers.data(), DType::f32, entry.shape));
    return numbers;
  }
  bool is_packed(const CheckpointEntry& entry) {
    return entry.shape.rank() == 2 && stack->top().read_grouped(entry.name, entry.shape) != nullptr;
  }
  std::vector<std::byte> stored_bytes(const std::string& name) {
    const auto shape = stored->shape_of(name);
    if (!shape) return {};
    const auto bytes = stored->read(name, *shape).bytes();
    return {bytes.begin(), bytes.end()};
  }

  Memory memory;
  ThreadPool threads{1};
  ModelSource source;
  Json config;
  std::unique_ptr<Checkpoint> stored;
  std::unique_ptr<WeightStack> stack;
};

class FuseModel : public testing::Test {
 protected:
  void SetUp() override {}

  static ModelSource source_of(const std::string& base) { return ModelSource(source_path(base)); }
  // Pairs of drawn numbers for the modules of a base.
  Adapter adapter_for(const std::string& base,
                      const std::function<bool(std::string_view)>& adapts) {
    const AdapterBase modules = read_adapter_base(source_of(base));
    std::vector<LoraPair> pairs;
    for (const std::string& module : modules.modules) {
      if (!adapts(module)) continue;
      const MatrixSize size = *modules.size_of(module);
      const auto rank = static_cast<int64_t>(1 + pairs.size() % 4);
      pairs.push_back({.module = module,
                       .a = drawn({rank, size.in}, 2 * pairs.size()),
                       .b = drawn({size.out, rank}, 2 * pairs.size() + 1),
                       .scale = 1.5f});
    }
    return Adapter("", std::move(pairs));
  }
  OwnedTensor drawn(const Extents& shape, uint64_t seed) {
    OwnedTensor tensor = allocate_tensor(memory_, DType::f32, shape);
    auto* const elements = tensor.view.elements<float>();
    for (int64_t i = 0; i < tensor.view.num_elements(); ++i) {
      elements[i] = static_cast<float>(0.4 * uniform_draw(seed, uint64_t(i)) - 0.2);
    }
    return tensor;
  }
  Adapter head_adapter(const std::string& base, float size) {
    const DecoderConfig config = read_model_config(source_of(base), LoadFormat::files);
    LoraPair pair{.module = "lm_head",
                  .a = allocate_tensor(memory_, DType::f32, {1, config.hidden_size}),
                  .b = allocate_tensor(memory_, DType::f32, {config.vocab_size, 1}),
                  .scale = 2};
    std::fill_n(pair.a.view.elements<float>(), config.hidden_size, size);
    std::fill_n(pair.b.view.elements<float>(), config.vocab_size, 0.5f);
    std::vector<LoraPair> pairs;
    pairs.push_back(std::move(pair));
    return Adapter("", std::move(pairs));
  }
  FusedSizes fuse(const std::string& base, const Adapter& adapter, FuseOptions options) {
    return fuse_model(source_of(base), adapter, options, threads_);
  }
  FuseOptions options() const { return {.to = directory_ / "out", .dtype = {}, .format = {}}; }

  // The pair of a tensor of the base, or null.
  static const LoraPair* pair_of(const Adapter& adapter, const std::string& name) {
    for (const LoraPair& pair : adapter.pairs()) {
      if (name.ends_with(pair.module + ".weight")) return &pair;
    }
    return nullptr;
  }
  // The base's numbers with the pair, in float32.
  static std::vector<float> fused_values(OpenModel& base, const CheckpointEntry& entry,
                                         const LoraPair* pair) {
    std::vector<float> values = base.values(entry);
    if (pair == nullptr) return values;
    const PairDelta delta(*pair);
    const auto length = static_cast<size_t>(entry.shape[1]);
    for (int64_t row = 0; row < entry.shape[0]; ++row) {
      delta.add_to_row(row, std::span(values).subspan(static_cast<size_t>(row) * length, length));
    }
    return values;
  }
  static std::vector<float> rounded(std::vector<float> values, DType dtype) {
    with_float_dtype(dtype, [&]<class T>() {
      for (float& value : values) value = to_float(from_float<T>(value));
    });
    return values;
  }
  // As quantised from float32, with scales of `dtype`.
  std::vector<float> quantized(std::vector<float> values, const Extents& shape, AffineFormat format,
                               DType dtype) {
    const Tensor numbers(values.data(), DType::f32, shape);
    const OwnedAffineRows rows(numbers, format, "test", memory_, threads_);
    const OwnedTensor scales = allocate_tensor(memory_, dtype, rows.tensors().scales.shape());
    const OwnedTensor biases = allocate_tensor(memory_, dtype, rows.tensors().scales.shape());
    copy_elements(rows.tensors().scales, scales.view);
    copy_elements(rows.tensors().biases, biases.view);
    const AffineRows of_dtype(
        {.words = rows.tensors().words, .scales = scales.view, .biases = biases.view}, format);
    for (int64_t row = 0; row < shape[0]; ++row) {
      of_dtype.read_values(row, {values.data() + row * shape[1], static_cast<size_t>(shape[1])});
    }
    return values;
  }

  TestDirectory temporary_;
  fs::path directory_ = temporary_.path();
  Memory memory_;
  ThreadPool threads_{2};
};

bool is_attention(std::string_view module) { return module.find("self_attn") != module.npos; }

TEST_F(FuseModel, PlainMatricesKeepTheirTypeAndTheOthersTheirBytes) {
  const Adapter adapter = adapter_for(kPlainBase, is_attention);
  for (const auto dtype : {std::optional<DType>(), std::optional(DType::bf16)}) {
    FuseOptions chosen = options();
    chosen.dtype = dtype;
    uint64_t last_done = 0, last_all = 0;
    chosen.progress = [&](uint64_t done, uint64_t all) {
      EXPECT_GT(done, last_done);
      last_done = done;
      last_all = all;
    };
    const FusedSizes sizes = fuse(kPlainBase, adapter, chosen);
    EXPECT_EQ(sizes.num_fused, static_cast<int64_t>(adapter.pairs().size()));
    EXPECT_EQ(sizes.quantized_parameters, 0);
    EXPECT_EQ(last_done, last_all);
    EXPECT_EQ(sizes.bytes_after, last_all);
    OpenModel base(source_path(kPlainBase)), fused(chosen.to);
    ASSERT_EQ(fused.entries().size(), base.entries().size());
    int64_t changed = 0;
    for (const CheckpointEntry& entry : base.entries()) {
      SCOPED_TRACE(entry.name);
      const LoraPair* const pair = pair_of(adapter, entry.name);
      const DType expected = dtype.value_or(entry.dtype);
      EXPECT_EQ(fused.values(entry), rounded(fused_values(base, entry, pair), expected));
      EXPECT_EQ(fused.stored->read(entry.name, entry.shape).dtype(), expected);
      changed += fused.values(entry) != rounded(base.values(entry), expected);
    }
    EXPECT_EQ(changed, sizes.num_fused);
    EXPECT_EQ(fused.config.find("quantization"), nullptr);
    EXPECT_EQ(fused.config.find("dtype")->as_string("dtype"), dtype ? "bfloat16" : "float32");
    EXPECT_TRUE(fs::exists(chosen.to / "generation_config.json"));
    EXPECT_EQ(load_model({.model = chosen.to.string()})->decoder->num_parameters(),
              sizes.parameters);
    fs::remove_all(chosen.to);
  }
}

TEST_F(FuseModel, OtherMatricesOfAPackedBaseStayPacked) {
  const Adapter adapter = adapter_for(kPackedBase, is_attention);
  const FusedSizes sizes = fuse(kPackedBase, adapter, options());
  OpenModel base(source_path(kPackedBase)), fused(options().to);
  ASSERT_EQ(fused.entries().size(), base.entries().size());
  int64_t packed = 0;
  for (const CheckpointEntry& entry : base.entries()) {
    SCOPED_TRACE(entry.name);
    const LoraPair* const pair = pair_of(adapter, entry.name);
    const std::string module = entry.name.substr(0, entry.name.size() - 7);
    if (pair != nullptr) {
      // A matrix that the base excludes from quantisation keeps its type.
      const DType dtype = base.is_packed(entry) ? DType::bf16 : entry.dtype;
      EXPECT_FALSE(fused.is_packed(entry));
      EXPECT_EQ(fused.values(entry), rounded(fused_values(base, entry, pair), dtype));
      EXPECT_EQ(fused.config.find("quantization")->find(module)->boolean(), false);
      continue;
    }
    packed += fused.is_packed(entry);
    EXPECT_EQ(fused.is_packed(entry), base.is_packed(entry));
    for (const std::string& name : {entry.name, module + ".scales", module + ".biases"}) {
      EXPECT_EQ(fused.stored_bytes(name), base.stored_bytes(name));
    }
  }
  EXPECT_GE(packed, 5);
  EXPECT_EQ(sizes.num_fused, 12);
  load_model({.model = options().to.string()});
}

TEST_F(FuseModel, APackedBaseBecomesPlainWithATypeOrWithEveryMatrixFused) {
  const Adapter adapter = adapter_for(kPackedBase, is_attention);
  FuseOptions chosen = options();
  chosen.dtype = DType::f16;
  const FusedSizes sizes = fuse(kPackedBase, adapter, chosen);
  EXPECT_EQ(sizes.bytes_after, static_cast<uint64_t>(sizes.parameters) * 2);
  OpenModel base(source_path(kPackedBase)), fused(chosen.to);
  for (const CheckpointEntry& entry : base.entries()) {
    SCOPED_TRACE(entry.name);
    EXPECT_FALSE(fused.is_packed(entry));
    EXPECT_EQ(fused.values(entry),
              rounded(fused_values(base, entry, pair_of(adapter, entry.name)), DType::f16));
  }
  EXPECT_EQ(fused.config.find("quantization"), nullptr);
  EXPECT_EQ(fused.config.find("quantization_config"), nullptr);
  EXPECT_EQ(fused.config.find("dtype")->as_string("dtype"), "float16");
  load_model({.model = chosen.to.string()});
}

// Only MLX's form is written.
TEST_F(FuseModel, MatricesOfAnotherToolBecomePlain) {
  const std::string name = "tests/goldens/quantised/gptq_model";
  const Adapter adapter = adapter_for(name, is_attention);
  fuse(name, adapter, options());
  OpenModel base(source_path(name)), fused(options().to);
  int packed = 0;
  for (const CheckpointEntry& entry : base.entries()) {
    SCOPED_TRACE(entry.name);
    const bool was_packed = base.is_packed(entry);
    packed += was_packed ? 1 : 0;
    EXPECT_FALSE(fused.is_packed(entry));
    EXPECT_EQ(fused.values(entry), rounded(fused_values(base, entry, pair_of(adapter, entry.name)),
                                           was_packed ? DType::bf16 : DType::f32));
  }
  EXPECT_EQ(packed, 21);  // one of them reordered
  EXPECT_EQ(fused.config.find("quantization_config"), nullptr);
  load_model({.model = options().to.string()});
}

TEST_F(FuseModel, BitsQuantiseTheFusedNumbers) {
  constexpr AffineFormat kFormat{.bits = 3, .group_size = 32};
  for (const std::string& name : {kPlainBase, kPackedBase}) {
    for (const auto dtype : {std::optional<DType>(), std::optional(DType::f16)}) {
      SCOPED_TRACE(name);
      const Adapter adapter = adapter_for(name, is_attention);
      FuseOptions chosen = options();
      chosen.format = kFormat;
      chosen.dtype = dtype;
      fuse(name, adapter, chosen);
      OpenModel base(source_path(name)), fused(chosen.to);
      for (const CheckpointEntry& entry : base.entries()) {
        SCOPED_TRACE(entry.name);
        const LoraPair* const pair = pair_of(adapter, entry.name);
        if (pair == nullptr && base.is_packed(entry)) {
          EXPECT_EQ(fused.stored_bytes(entry.name), base.stored_bytes(entry.name));
          EXPECT_EQ(fused.values(entry), base.values(entry));
          continue;
        }
        const DType type = dtype.value_or(base.is_packed(entry) ? DType::bf16 : entry.dtype);
        const std::vector<float> values = fused_values(base, entry, pair);
        ASSERT_EQ(fused.is_packed(entry), entry.shape.rank() == 2);
        EXPECT_EQ(fused.values(entry), entry.shape.rank() == 2
                                           ? quantized(values, entry.shape, kFormat, type)
                                           : rounded(values, type));
      }
      EXPECT_EQ(fused.config.find("quantization")->find("bits")->integer(), 3);
      load_model({.model = chosen.to.string()});
      fs::remove_all(chosen.to);
    }
  }
}

// The embedding stays as it is, and config.json says that the head is a matrix of its own.
TEST_F(FuseModel, ATiedHeadWithAPairBecomesAMatrix) {
  for (const std::string name : {"llama_scaled_tied", "gemma3_text_pattern2"}) {
    SCOPED_TRACE(name);
    const std::string base_path = "tests/goldens/models/" + name;
    const Adapter adapter = head_adapter(base_path, 0.25f);
    fuse(base_path, adapter, options());
    OpenModel base(source_path(base_path)), fused(options().to);
    const WeightReader names(base.stack->top());
    ASSERT_FALSE(names.contains("lm_head.weight"));
    const std::string embedding = names.file_name("embed_tokens.weight");
    const CheckpointEntry entry{
        .name = embedding, .dtype = DType::f32, .shape = *base.stack->top().shape_of(embedding)};
    const CheckpointEntry head{.name = "lm_head.weight", .dtype = DType::f32, .shape = entry.shape};
    EXPECT_EQ(fused.values(entry), base.values(entry));
    std::vector<float> expected = base.values(entry);
    for (float& value : expected) value += 2 * (0.25f * 0.5f);
    EXPECT_EQ(fused.values(head), expected);
    EXPECT_EQ(fused.config.find("tie_word_embeddings")->boolean(), false);
    EXPECT_FALSE(read_model_config(ModelSource(options().to), LoadFormat::files).tied_head);
    load_model({.model = options().to.string()});
    fs::remove_all(options().to);
  }
}

TEST_F(FuseModel, ShardsHaveAnIndex) {
  const Adapter adapter = adapter_for(kPlainBase, is_attention);
  FuseOptions chosen = options();
  chosen.max_shard_bytes = 20'000;
  fuse(kPlainBase, adapter, chosen);
  EXPECT_TRUE(fs::exists(chosen.to / "model.safetensors.index.json"));
  EXPECT_FALSE(fs::exists(chosen.to / "model.safetensors"));
  OpenModel base(source_path(kPlainBase)), fused(chosen.to);
  for (const CheckpointEntry& entry : base.entries()) {
    EXPECT_EQ(fused.values(entry), fused_values(base, entry, pair_of(adapter, entry.name)));
  }
  load_model({.model = chosen.to.string()});
}

TEST_F(FuseModel, RefusalsLeaveNothing) {
  const Adapter adapter = adapter_for(kPlainBase, is_attention);
  FuseOptions coarse = options();
  coarse.format = {.bits = 4, .group_size = 128};
  expect_error(ErrorCode::invalid, {"none of its matrices has rows of whole groups of 128"},
               [&] { fuse(kPlainBase, adapter, coarse); });
  FuseOptions half = options();
  half.dtype = DType::f16;
  expect_error(
      ErrorCode::numerical,
      {"lm_head.weight\" with the adapter's pair: found", "within float16", "try --dtype bfloat16"},
      [&] { fuse(kPlainBase, head_adapter(kPlainBase, 1e5f), half); });
  expect_error(ErrorCode::numerical, {"lm_head.weight\" with the adapter's pair: found inf"},
               [&] { fuse(kPlainBase, head_adapter(kPlainBase, INFINITY), options()); });
  FuseOptions packed = options();
  packed.format = {.bits = 4, .group_size = 32};
  expect_error(ErrorCode::numerical, {"lm_head.weight\" with the adapter's pair: row"},
               [&] { fuse(kPlainBase, head_adapter(kPlainBase, INFINITY), packed); });
  expect_error(ErrorCode::corrupt,
               {"layers.0.self_attn.k_proj.weight", "has shape [16, 32]", "need [32, 32]"}, [&] {
                 fuse(kPlainBase, adapter_for("tests/goldens/models/qwen3_tied", is_attention),
                      options());
               });
  FuseOptions stopped = options();
  stopped.progress = [](uint64_t, uint64_t) { throw Error(ErrorCode::cancelled, "interrupted"); };
  expect_error(ErrorCode::cancelled, {"interrupted"}, [&] { fuse(kPlainBase, adapter, stopped); });
  EXPECT_TRUE(fs::is_empty(directory_));
  fs::create_directory(directory_ / "out");
  expect_error(ErrorCode::invalid, {"out: exists already"},
               [&] { fuse(kPlainBase, adapter, options()); });
  EXPECT_TRUE(fs::is_empty(directory_ / "out"));
}

}  // namespace
}  // namespace paceline
