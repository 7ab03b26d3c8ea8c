// Adapters of PEFT beside models of every family: the logits are those of PEFT's own models
// (tools/goldens/make_family_adapter_goldens.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "adapters/adapter_files.h"
#include "base/mapped_file.h"
#include "load/model_adapter_base.h"
#include "load/model_source.h"
#include "models/pack_adapter.h"
#include "tests/kernels/chosen_isa.h"
#include "tests/models/test_model.h"
#include "tests/source_path.h"
#include "weights/checkpoint.h"

namespace paceline::testing {
namespace {

namespace fs = std::filesystem;

const fs::path kFamilyAdapters = source_path("tests/goldens/family_adapters");
constexpr std::string_view kLogits = "logits";  // the folder that is no adapter

std::vector<std::string> adapted_goldens() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFamilyAdapters)) {
    const std::string name = entry.path().filename().string();
    if (name != kLogits) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// The class that PEFT saw: families may share a name.
std::string class_of(const std::string& golden) {
  const fs::path path =
      source_path("tests/goldens/" + golden_kind(golden) + "/" + golden + "/config.json");
  const Json config = parse_json(read_text_file(path, 1 << 20), path.string());
  return config.find("architectures")->as_array("architectures")[0].as_string("architectures");
}

class FamilyAdapterGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(FamilyAdapterGolden, HasTheLogitsOfPeft) {
  const Golden golden = read_golden(GetParam(), golden_kind(GetParam()));
  Memory memory;
  const AdapterBase base = read_adapter_base(ModelSource(golden.directory));
  const Adapter adapter = read_adapter(kFamilyAdapters / GetParam(), base, memory);
  EXPECT_GE(adapter.pairs().size(), 8u);
  const auto file = open_checkpoint(kFamilyAdapters / kLogits);
  const Tensor stored = file->read(GetParam(), *file->shape_of(GetParam()));
  const std::span<const float> expected(stored.elements<float>(),
                                        static_cast<size_t>(stored.num_elements()));
  std::vector<RunOptions> runs = {{.backend = BackendKind::reference}};
  for (const Isa isa : isas_to_run()) runs.push_back({.isa = isa, .num_threads = 2});
  for (const RunOptions& run : runs) {
    TestModel model(golden.directory, run);
    SCOPED_TRACE(std::string(model.backend().name()));
    const AdapterWeights weights = pack_adapter(adapter, model.config(), model.backend());
    const std::vector<float> all = model.logits(golden.prompt_ids, 1 << 20, &weights);
    ASSERT_GT(all.size(), expected.size());
    const std::span<const float> last = std::span(all).last(expected.size());
    EXPECT_LT(max_difference(last, expected), 1e-4f);
    const std::vector<float> without = model.logits(golden.prompt_ids);
    EXPECT_GT(max_difference(std::span(without).last(expected.size()), expected), 1e-2f);
  }
}

INSTANTIATE_TEST_SUITE_P(all, FamilyAdapterGolden, ::testing::ValuesIn(adapted_goldens()),
                         [](const auto& test) { return test.param; });

TEST(FamilyAdapterGoldens, HaveEveryClassOfTheModelGoldens) {
  std::set<std::string> adapted;
  for (const std::string& name : adapted_goldens()) adapted.insert(class_of(name));
  for (const char* const kind : {"models", "latents", "hybrids", "mixed"}) {
    for (const std::string& name : golden_names(kind)) {
      EXPECT_TRUE(adapted.contains(class_of(name))) << name << ": " << class_of(name);
    }
  }
}

}  // namespace
}  // namespace paceline::testing
