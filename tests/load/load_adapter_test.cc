// Adapters of a loaded model: read, checked against it, scaled, packed and accounted.
#include "load/load_adapter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "adapters/adapter_files.h"
#include "engine/adapter_set.h"
#include "load/model_adapter_base.h"
#include "load/stored_model.h"
#include "models/decoder.h"
#include "tests/expect_error.h"
#include "tests/models/adapter_directory.h"
#include "tests/models/random_adapter.h"
#include "tests/source_path.h"
#include "tests/weights/gguf_writer.h"

namespace paceline::testing {
namespace {

class LoadAdapter : public ::testing::Test {
 protected:
  static LoadOptions options(const std::string& name = "llama_scaled_tied") {
    return {.model = source_path("tests/goldens/models/" + name),
            .kv_cache_memory_bytes = 1 << 20,
            .num_threads = 1};
  }
  std::string write(const std::string& name, const RandomAdapter& adapter) const {
    return directory_.write(name, config_, adapter);
  }

  AdapterDirectory directory_;
  DecoderConfig config_ = read_model_config(open_model_source(options().model), LoadFormat::files);
};

TEST_F(LoadAdapter, TheModelHasThoseOfTheOptionsByName) {
  LoadOptions asked = options();
  asked.loras = {{.name = "first", .path = write("a", {.seed = 1})},
                 {.name = "second", .path = write("b", {.seed = 2, .max_rank = 9})}};
  const auto model = load_model(asked);
  EXPECT_EQ(model->adapters->names(), (std::vector<std::string>{"first", "second"}));
  AdapterSet::Handle first = model->adapters->find("first");
  const AdapterSet::Handle second = model->adapters->find("second");
  EXPECT_FALSE(first->digest == second->digest);
  EXPECT_GT(first->weights.size_bytes(), 0u);
  EXPECT_LE(second->max_rank, 9);
  EXPECT_EQ(model->adapters->find("third"), nullptr);
  const size_t before = model->memory.stats().active_bytes;
  const size_t bytes = first->weights.size_bytes();
  EXPECT_TRUE(model->adapters->remove("first"));
  EXPECT_FALSE(model->adapters->remove("first"));
  EXPECT_EQ(model->memory.stats().active_bytes, before) << "it is held here";
  first.reset();
  EXPECT_LE(model->memory.stats().active_bytes, before - bytes);
}

TEST_F(LoadAdapter, AScaleIsTimesTheAdaptersOwn) {
  const auto model = load_model(options());
  const std::string path = write("a", {.dtype = DType::f32});
  const auto plain = load_adapter(*model, {.name = "a", .path = path}, 64);
  const auto same = load_adapter(*model, {.name = "b", .path = path, .scale = 1}, 64);
  const auto twice = load_adapter(*model, {.name = "a", .path = path, .scale = 2}, 64);
  EXPECT_TRUE(plain->digest == same->digest);
  EXPECT_FALSE(plain->digest == twice->digest);
  const PackedMatrix& b = *plain->weights.blocks[0][0][0].b;
  const PackedMatrix& b_twice = *twice->weights.blocks[0][0][0].b;
  std::vector<float> row(static_cast<size_t>(b.k)), row_twice = row;
  unpack_row(b, 3, row.data());
  unpack_row(b_twice, 3, row_twice.data());
  for (size_t i = 0; i < row.size(); ++i) EXPECT_EQ(2 * row[i], row_twice[i]);
  const auto none = load_adapter(*model, {.name = "a", .path = path, .scale = 0}, 64);
  EXPECT_EQ(none->weights.size_bytes(), 0u);
}

TEST_F(LoadAdapter, ErrorsNameTheAdapterAndWhatIsAtFault) {
  const auto fail = [&](ErrorCode code, const std::vector<std::string>& parts,
                        const std::vector<LoraSource>& loras, auto&& change) {
    LoadOptions asked = options();
    asked.loras = loras;
    change(asked);
    expect_error(code, parts, [&] { load_model(asked); });
  };
  const auto nothing = [](LoadOptions&) {};
  const std::string path = write("a", {.max_rank = 40});
  fail(ErrorCode::not_found, {"--lora: ", "nowhere"}, {{.name = "x", .path = "/nowhere"}}, nothing);
  fail(ErrorCode::invalid, {"--lora x: two adapters"},
       {{.name = "x", .path = path}, {.name = "x", .path = path}}, nothing);
  fail(ErrorCode::invalid, {"--lora ", "expected NAME=DIR"}, {{.name = "", .path = path}}, nothing);
  fail(ErrorCode::invalid, {"--lora: ", path, "--max-lora-rank allows 4"},
       {{.name = "x", .path = path}}, [](LoadOptions& o) { o.max_lora_rank = 4; });
  fail(ErrorCode::invalid, {"--max-loras: 0, expected 1 to"}, {},
       [](LoadOptions& o) { o.max_loras = 0; });
  fail(ErrorCode::invalid, {"--max-lora-rank: 2000"}, {},
       [](LoadOptions& o) { o.max_lora_rank = 2000; });
  // Of another model: its hidden size differs.
  LoadOptions other = options("gemma2_odd");
  other.loras = {{.name = "x", .path = path}};
  expect_error(ErrorCode::invalid, {"--lora: ", "another model"}, [&] { load_model(other); });
}

// Rows of queries and keys lie as llama.cpp rotates them: pairs are neighbours.
std::vector<float> interleaved(const Tensor& b, int64_t heads) {
  const int64_t rank = b.size(1), head = b.size(0) / heads;
  std::vector<float> rows;
  for (int64_t row = 0; row < b.size(0); ++row) {
    const int64_t within = row % head;
    const int64_t from = row - within + within % 2 * (head / 2) + within / 2;
    const float* const elements = b.row<float>(from);
    rows.insert(rows.end(), elements, elements + rank);
  }
  return rows;
}

TEST_F(LoadAdapter, AGgufAdapterIsThePeftAdapter) {
  const RandomAdapter kind = {.dtype = DType::f32, .max_rank = 1, .adapts = [](std::string_view m) {
                                return m.starts_with("layers.0.self_attn.q_proj") ||
                                       m.starts_with("layers.1.self_attn.k_proj") ||
                                       m.starts_with("layers.1.mlp.down_proj");
                              }};
  const std::string peft = write("a", kind);
  Memory memory;
  const Adapter adapter = random_adapter(config_, kind, memory);
  GgufWriter writer;
  writer.string("general.architecture", "llama").string("general.type", "adapter");
  writer.string("adapter.type", "lora").number("adapter.lora.alpha", 1.5f);
  const auto add = [&](const std::string& tensor, const std::string& module, int64_t heads) {
    const LoraPair& pair = *adapter.find(module);
    const auto size = [](int64_t n) { return static_cast<uint64_t>(n); };
    const float* const a = pair.a.view.elements<float>();
    writer.floats(tensor + ".weight.lora_a", {size(pair.rank()), size(pair.in())},
                  {a, a + pair.a.view.num_elements()});
    const float* const b = pair.b.view.elements<float>();
    writer.floats(tensor + ".weight.lora_b", {size(pair.out()), size(pair.rank())},
                  heads > 0 ? interleaved(pair.b.view, heads)
                            : std::vector<float>(b, b + pair.b.view.num_elements()));
  };
  add("blk.0.attn_q", "layers.0.self_attn.q_proj", config_.num_heads);
  add("blk.1.attn_k", "layers.1.self_attn.k_proj", config_.num_kv_heads);
  add("blk.1.ffn_down", "layers.1.mlp.down_proj", 0);
  const std::string gguf = (directory_.path() / "a.gguf").string();
  std::ofstream(gguf, std::ios::binary) << writer.file();
  const auto model = load_model(options());
  const auto from_peft = load_adapter(*model, {.name = "a", .path = peft}, 64);
  const auto from_gguf = load_adapter(*model, {.name = "a", .path = gguf}, 64);
  EXPECT_TRUE(from_peft->digest == from_gguf->digest);
  const auto other = load_model(options("gemma2_odd"));
  expect_error(ErrorCode::invalid, {"a.gguf", "general.architecture is \"llama\"", "gemma2"},
               [&] { load_adapter(*other, {.name = "a", .path = gguf}, 64); });
}

// Names and the order of rows are those that convert and fuse read.
TEST_F(LoadAdapter, ExpertsOfPeftAreThoseOfTheFiles) {
  for (const std::string name : {"gpt_oss_plain", "granitemoe_bias", "mixtral_plain"}) {
    const std::string path = source_path("tests/goldens/expert_adapters/" + name + "_stacked");
    const auto model = load_model(options(name));
    const AdapterBase base = read_adapter_base(open_model_source(options(name).model));
    Memory memory;
    EXPECT_TRUE(load_adapter(*model, {.name = "a", .path = path}, 64)->digest ==
                read_adapter(path, base, memory).digest())
        << name;
  }
}

// llama.cpp's files have the matrices of all experts of a projection in one tensor.
TEST_F(LoadAdapter, AGgufAdapterOfExpertsIsThePeftAdapter) {
  for (const auto& [name, architecture] :
       {std::pair<std::string, std::string>{"mixtral_plain", "llama"},
        {"olmoe_plain", "olmoe"},
        {"gpt_oss_plain", "gpt-oss"}}) {
    SCOPED_TRACE(name);
    const DecoderConfig config =
        read_model_config(open_model_source(options(name).model), LoadFormat::files);
    const RandomAdapter kind = {.dtype = DType::f32,
                                .min_rank = 2,
                                .max_rank = 2,
                                .gate_up_apart = true,
                                .adapts = [](std::string_view module) {
                                  return module.starts_with("layers.1.mlp.experts.");
                                }};
    const std::string peft = directory_.write(name, config, kind);
    Memory memory;
    const Adapter adapter = random_adapter(config, kind, memory);
    GgufWriter writer;
    writer.string("general.architecture", architecture).string("general.type", "adapter");
    writer.string("adapter.type", "lora").number("adapter.lora.alpha", 3.0f);
    const auto experts = static_cast<uint64_t>(config.mixture->routing.num_experts);
    for (const std::string part : {"gate", "up", "down"}) {
      std::vector<float> a, b;
      uint64_t in = 0, out = 0;
      for (uint64_t expert = 0; expert < experts; ++expert) {
        const LoraPair& pair =
            *adapter.find(fmt::format("layers.1.mlp.experts.{}.{}_proj", expert, part));
        for (const auto& [all, one] : {std::pair(&a, &pair.a.view), std::pair(&b, &pair.b.view)}) {
          const float* const elements = one->elements<float>();
          all->insert(all->end(), elements, elements + one->num_elements());
        }
        in = static_cast<uint64_t>(pair.in());
        out = static_cast<uint64_t>(pair.out());
      }
      const std::string tensor = "blk.1.ffn_" + part + "_exps.weight";
      writer.floats(tensor + ".lora_a", {experts, 2, in}, a);
      writer.floats(tensor + ".lora_b", {experts, out, 2}, b);
    }
    const std::string gguf = (directory_.path() / (name + ".gguf")).string();
    std::ofstream(gguf, std::ios::binary) << writer.file();
    const auto model = load_model(options(name));
    const auto from_peft = load_adapter(*model, {.name = "a", .path = peft}, 64);
    const auto from_gguf = load_adapter(*model, {.name = "a", .path = gguf}, 64);
    EXPECT_TRUE(from_peft->digest == from_gguf->digest);
    EXPECT_GT(from_gguf->weights.size_bytes(), 0u);
    const AdapterBase base = read_adapter_base(open_model_source(options(name).model));
    EXPECT_TRUE(read_adapter(gguf, base, memory).digest() == from_peft->digest);
  }
}

}  // namespace
}  // namespace paceline::testing
