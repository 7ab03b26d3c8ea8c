// Adapters of PEFT on the experts of mixtures, in both of its formats: the logits are those of
// PEFT's own models, and what is written is what PEFT wrote (tools/goldens/make_expert_goldens.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "adapters/adapter_files.h"
#include "adapters/peft_directory.h"
#include "base/mapped_file.h"
#include "base/thread_pool.h"
#include "load/fuse_model.h"
#include "load/model_adapter_base.h"
#include "load/model_source.h"
#include "models/pack_adapter.h"
#include "tests/kernels/chosen_isa.h"
#include "tests/models/random_adapter.h"
#include "tests/models/test_model.h"
#include "tests/source_path.h"
#include "tests/test_directory.h"
#include "weights/checkpoint.h"
#include "weights/safetensors.h"

namespace paceline::testing {
namespace {

namespace fs = std::filesystem;

const fs::path kExpertAdapters = source_path("tests/goldens/expert_adapters");

std::vector<std::string> expert_adapters() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kExpertAdapters)) {
    const std::string name = entry.path().filename().string();
    if (name != "logits") names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// The tensors of two files, by name.
struct BothFiles {
  BothFiles(const fs::path& from, const fs::path& to) : original_file(from), written_file(to) {
    for (const auto& [file, tensors] :
         {std::pair(&original_file, &original), std::pair(&written_file, &written)}) {
      *tensors = parse_safetensors_header(file->bytes(), file->path().string());
      std::ranges::sort(*tensors, {}, &SafetensorsTensor::name);
    }
  }
  MappedFile original_file, written_file;
  std::vector<SafetensorsTensor> original, written;
};

class ExpertAdapterGolden : public ::testing::TestWithParam<std::string> {
 protected:
  // "olmoe_plain" of "olmoe_plain_stacked".
  Golden golden_ = find_golden(GetParam().substr(0, GetParam().rfind('_')));
  fs::path path_ = kExpertAdapters / GetParam();
  Memory memory_;
  AdapterBase base_ = read_adapter_base(ModelSource(golden_.directory));
  Adapter adapter_ = read_adapter(path_, base_, memory_);
  std::unique_ptr<Checkpoint> file_ = open_checkpoint(kExpertAdapters / "logits");

  std::span<const float> expected() {
    const Tensor stored = file_->read(GetParam(), *file_->shape_of(GetParam()));
    return {stored.elements<float>(), static_cast<size_t>(stored.num_elements())};
  }
};

TEST_P(ExpertAdapterGolden, HasTheLogitsOfPeft) {
  std::vector<RunOptions> runs = {{.backend = BackendKind::reference}};
  for (const Isa isa : isas_to_run()) runs.push_back({.isa = isa, .num_threads = 2});
  for (const RunOptions& run : runs) {
    TestModel model(golden_.directory, run);
    SCOPED_TRACE(std::string(model.backend().name()));
    const AdapterWeights weights = pack_adapter(adapter_, model.config(), model.backend());
    const std::vector<float> all = model.logits(golden_.prompt_ids, 1 << 20, &weights);
    EXPECT_LT(max_difference(std::span(all).last(expected().size()), expected()), 1e-4f);
    const std::vector<float> without = model.logits(golden_.prompt_ids);
    EXPECT_GT(max_difference(std::span(without).last(expected().size()), expected()), 1e-2f);
  }
}

TEST_P(ExpertAdapterGolden, FusedHasTheLogitsOfPeft) {
  const TestDirectory temporary;
  const fs::path out = temporary.path() / "fused";
  ThreadPool threads(2);
  fuse_model(ModelSource(golden_.directory), adapter_,
             {.to = out, .dtype = DType::f32, .format = {}}, threads);
  TestModel model(out, {.isa = isas_to_run().back()});
  const std::vector<float> all = model.logits(golden_.prompt_ids);
  EXPECT_LT(max_difference(std::span(all).last(expected().size()), expected()), 1e-4f);
}

// PEFT's own tensors, byte for byte.
TEST_P(ExpertAdapterGolden, IsWrittenAsPeftWroteIt) {
  const TestDirectory temporary;
  const fs::path out = temporary.path() / "written";
  write_peft_adapter(adapter_, base_, out);
  const BothFiles files(path_ / kPeftWeightsFile, out / kPeftWeightsFile);
  ASSERT_EQ(files.written.size(), files.original.size());
  for (size_t i = 0; i < files.original.size(); ++i) {
    SCOPED_TRACE(files.original[i].name);
    EXPECT_EQ(files.written[i].name, files.original[i].name);
    EXPECT_EQ(files.written[i].shape, files.original[i].shape);
    EXPECT_TRUE(std::ranges::equal(files.written[i].bytes, files.original[i].bytes));
  }
  EXPECT_EQ(read_adapter(out, base_, memory_).digest(), adapter_.digest());
  if (base_.expert_names.alternates) return;  // only the base tells whose rows they are
  EXPECT_EQ(read_adapter(out, {}, memory_).digest(), adapter_.digest()) << "without a base";
}

INSTANTIATE_TEST_SUITE_P(all, ExpertAdapterGolden, ::testing::ValuesIn(expert_adapters()),
                         [](const auto& test) { return test.param; });

// A base whose experts are in MXFP4, beside the adapter and fused.
TEST(ExpertAdapters, FusedIntoMxfp4HaveTheLogitsOfTheAdapterBesideIt) {
  const Golden golden = read_golden("gpt_oss_mxfp4");
  TestModel model(golden.directory, {.isa = isas_to_run().back()});
  Memory memory;
  const Adapter adapter = random_adapter(model.config(), {.dtype = DType::f32}, memory);
  const AdapterWeights weights = pack_adapter(adapter, model.config(), model.backend());
  const std::vector<float> beside = model.logits(golden.prompt_ids, 1 << 20, &weights);
  EXPECT_GT(max_difference(beside, model.logits(golden.prompt_ids)), 1e-2f);
  const TestDirectory temporary;
  const fs::path out = temporary.path() / "fused";
  ThreadPool threads(2);
  fuse_model(ModelSource(golden.directory), adapter, {.to = out, .dtype = DType::f32, .format = {}},
             threads);
  TestModel fused(out, {.isa = isas_to_run().back()});
  EXPECT_LT(max_difference(fused.logits(golden.prompt_ids), beside), 1e-4f);
}

}  // namespace
}  // namespace paceline::testing
