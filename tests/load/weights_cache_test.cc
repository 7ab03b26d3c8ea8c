#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <thread>

#include "base/mapped_file.h"
#include "load/loaded_model.h"
#include "load/weights_cache.h"
#include "models/decoder.h"
#include "prepared/prepared_file.h"
#include "prepared/write_prepared.h"
#include "tests/source_path.h"
#include "tests/test_directory.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;
using Outcome = WeightsCacheUse::Outcome;

class WeightsCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {}

  // A copy that may be changed.
  fs::path model(const std::string& name = "models/llama_bias") {
    const fs::path copy = directory_ / fs::path(name).filename();
    fs::copy(source_path("tests/goldens/" + name), copy);
    return copy;
  }
  LoadOptions options(const fs::path& model) const {
    return {.model = model.string(),
            .weights_cache = cache_.string(),
            .max_num_batched_tokens = 16,
            .kv_cache_memory_bytes = 1 << 20,
            .num_threads = 2};
  }
  static std::unique_ptr<LoadedModel> load(const LoadOptions& options, Outcome expected,
                                           const std::string& problem = {}) {
    auto model = load_model(options);
    EXPECT_EQ(static_cast<int>(model->weights_cache.outcome), static_cast<int>(expected))
        << model->weights_cache.problem;
    EXPECT_EQ(model->prepared != nullptr,
              expected == Outcome::reused || expected == Outcome::written);
    if (problem.empty()) {
      EXPECT_EQ(model->weights_cache.problem, "");
    } else {
      EXPECT_THAT(model->weights_cache.problem, ::testing::HasSubstr(problem));
    }
    return model;
  }
  std::vector<fs::path> kept() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(cache_)) found.push_back(entry.path());
    return found;
  }
  void change_byte(const fs::path& path, size_t at) const {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 1));
  }

  TestDirectory temporary_;
  fs::path directory_ = temporary_.path();
  fs::path cache_ = directory_ / "made" / "cache";
};

void expect_same_matrices(const Decoder& found, const Decoder& expected) {
  const auto a = found.weights(), b = expected.weights();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i]->format_name(), b[i]->format_name());
    ASSERT_EQ(a[i]->bytes(), b[i]->bytes());
    EXPECT_EQ(
        std::memcmp(a[i]->storage.get(), b[i]->storage.get(), static_cast<size_t>(a[i]->bytes())),
        0);
  }
}

TEST_F(WeightsCacheTest, TheSecondLoadMapsWhatTheFirstHasWritten) {
  const LoadOptions options = this->options(model());
  const auto first = load(options, Outcome::written);
  const auto second = load(options, Outcome::reused);
  ASSERT_EQ(kept().size(), 1u);
  EXPECT_EQ(second->weights_cache.file, kept()[0].string());
  EXPECT_EQ(second->weights_cache.bytes, fs::file_size(kept()[0]));
  EXPECT_EQ(first->weights_cache.bytes, second->weights_cache.bytes);
  expect_same_matrices(*second->decoder, *first->decoder);
  EXPECT_EQ(second->decoder->num_parameters(), first->decoder->num_parameters());
  EXPECT_EQ(second->kv_dtype, first->kv_dtype);
  EXPECT_GE(second->weight_bytes, fs::file_size(kept()[0]));
  LoadOptions uncached = options;
  uncached.weights_cache = "";
  const auto packed = load(uncached, Outcome::off);
  expect_same_matrices(*first->decoder, *packed->decoder);
  EXPECT_LT(second->memory.stats().active_bytes, packed->memory.stats().active_bytes);
  EXPECT_EQ(first->memory.stats().active_bytes, second->memory.stats().active_bytes);
}

TEST_F(WeightsCacheTest, MixturesAreMappedExpertByExpert) {
  for (const std::string name : {"qwen2_moe_sparse_step", "glm4_moe_groups", "gpt_oss_mxfp4"}) {
    SCOPED_TRACE(name);
    const LoadOptions options = this->options(model("models/" + name));
    const auto first = load(options, Outcome::written);
    const auto second = load(options, Outcome::reused);
    expect_same_matrices(*second->decoder, *first->decoder);
    const MixtureConfig& mixture = *second->decoder->config().mixture;
    for (size_t i = 0; i < second->decoder->blocks().size(); ++i) {
      if (!second->decoder->config().layers[i].is_mixture) continue;
      for (int64_t expert = 0; expert < mixture.routing.num_experts; ++expert) {
        const std::string down =
            fmt::format("layers.{}.{}.{}.down_proj.weight", i, mixture.names.experts, expert);
        EXPECT_NO_THROW(second->prepared->matrix(down, mixture.expert_size, ActivationType::int8));
      }
    }
  }
}

// Damage that leaves a file's stamp as it was.
TEST_F(WeightsCacheTest, ExpertsAreVerifiedAgainWhereTheFilesStampIsAnother) {
  const LoadOptions options = this->options(model("models/qwen3_moe_tied"));
  const fs::path file = load(options, Outcome::written)->weights_cache.file;
  const fs::path note = file.string() + ".verified";
  ASSERT_TRUE(fs::exists(note));
  // The last part is an expert's of the last layer, behind which there is a norm at most.
  const auto damage = [&] { change_byte(file, fs::file_size(file) - 2000); };
  ::usleep(20'000);  // more than a tick of the clock that files are stamped with
  damage();
  load(options, Outcome::written, "is damaged");
  damage();
  const FileStamp stamp = *file_stamp(file);
  std::ofstream(note) << fmt::format("{} {} {} {}\n", stamp.size_bytes, stamp.inode,
                                     stamp.modified_ns, stamp.changed_ns);
  load(options, Outcome::reused);  // not read
  fs::remove(note);
  load(options, Outcome::written, "is damaged");
  EXPECT_TRUE(fs::exists(note));
  change_byte(file, sizeof(PreparedHead) + 5);
  load(options, Outcome::written, "its table is damaged");
  LoadOptions uncached = options;
  uncached.weights_cache = "";
  expect_same_matrices(*load(options, Outcome::reused)->decoder,
                       *load(uncached, Outcome::off)->decoder);
}

TEST_F(WeightsCacheTest, IsOffByDefaultAndForDummies) {
  LoadOptions options = this->options(model());
  options.load_format = LoadFormat::dummy;
  load(options, Outcome::off);
  options.load_format = LoadFormat::files;
  options.weights_cache = "";
  load(options, Outcome::off);
  EXPECT_FALSE(fs::exists(cache_));
}

TEST_F(WeightsCacheTest, EachSettingThatChangesWeightsHasAFileOfItsOwn) {
  const LoadOptions usual = options(model());
  size_t files = 0;
  const std::function<void(LoadOptions&)> changes[] = {
      [](LoadOptions&) {}, [](LoadOptions& o) { o.dtype = DataType::bfloat16; },
      [](LoadOptions& o) { o.quantize = LoadQuantization::q4; },
      [](LoadOptions& o) { o.quantize = LoadQuantization::q8; },
      [](LoadOptions& o) {
        o.quantize = LoadQuantization::q8;
        o.activations = Activations::plain;
      }};
  for (const auto& change : changes) {
    LoadOptions options = usual;
    change(options);
    const auto first = load(options, Outcome::written);
    const auto second = load(options, Outcome::reused);
    expect_same_matrices(*second->decoder, *first->decoder);
    EXPECT_EQ(second->is_quantised, first->is_quantised);
    EXPECT_EQ(kept().size(), ++files);
  }
}

TEST_F(WeightsCacheTest, OtherSettingsShareOne) {
  LoadOptions options = this->options(model());
  options.quantize = LoadQuantization::q4;
  load(options, Outcome::written);
  options.activations = Activations::bfloat16;
  const auto second = load(options, Outcome::reused);
  options.weights_cache = "";
  expect_same_matrices(*second->decoder, *load(options, Outcome::off)->decoder);
  int num_quantised = 0;
  for (const PackedMatrix* matrix : second->decoder->weights()) {
    if (!matrix->groups) continue;  // rows of no whole groups
    EXPECT_EQ(matrix->groups->activations, ActivationType::bf16);
    ++num_quantised;
  }
  EXPECT_GT(num_quantised, 0);
  options.weights_cache = cache_.string();
  options.num_threads = 1;
  options.max_kv_size = 8;
  options.block_size = 4;
  options.kv_cache_dtype = DataType::float32;
  load(options, Outcome::reused);
}

TEST_F(WeightsCacheTest, FingerprintsAreTheSame) {
  LoadOptions options = this->options(model());
  load(options, Outcome::written);  // without a fingerprint, but with the digest for it
  options.fingerprint = true;
  const std::string fingerprint = load(options, Outcome::reused)->fingerprint;
  options.weights_cache = "";
  EXPECT_EQ(fingerprint, load(options, Outcome::off)->fingerprint);
}

TEST_F(WeightsCacheTest, AChangedModelIsAnother) {
  const fs::path changed = model();
  const LoadOptions options = this->options(changed);
  load(options, Outcome::written);
  const fs::path weights = changed / "model.safetensors";
  const auto time = fs::last_write_time(weights);
  ::usleep(20'000);  // more than a tick of the clock that files are stamped with
  change_byte(weights, fs::file_size(weights) - 2);
  fs::last_write_time(weights, time);
  const auto second = load(options, Outcome::written);
  LoadOptions uncached = options;
  uncached.weights_cache = "";
  expect_same_matrices(*second->decoder, *load(uncached, Outcome::off)->decoder);
  std::string config = read_text_file(changed / "config.json", 1 << 20);
  std::ofstream(changed / "config.json") << config << "\n";
  load(options, Outcome::written);
  load(options, Outcome::reused);
  EXPECT_EQ(kept().size(), 3u);
}

TEST_F(WeightsCacheTest, NothingIsKeptOfFilesThatChangeWhileTheyAreRead) {
  const fs::path changed = model();
  const auto checkpoint = open_checkpoint(changed);
  ThreadPool threads(1);
  WeightsCache cache(cache_, {.files = checkpoint->files(), .config = "{}"}, threads);
  EXPECT_EQ(cache.find(), nullptr);
  ::usleep(20'000);  // more than a tick of the clock that files are stamped with
  change_byte(changed / "model.safetensors", 1000);
  const auto writer = cache.begin(*checkpoint);
  ASSERT_NE(writer, nullptr);
  EXPECT_FALSE(cache.finish(*writer, {}));
  EXPECT_EQ(cache.use().outcome, Outcome::failed);
  EXPECT_THAT(cache.use().problem, ::testing::HasSubstr("changed while they were read"));
  EXPECT_TRUE(fs::is_empty(cache_));
}

TEST_F(WeightsCacheTest, DamageIsFoundAndMended) {
  const LoadOptions options = this->options(model());
  load(options, Outcome::written);
  const fs::path file = kept()[0];
  const size_t size = fs::file_size(file);
  for (const size_t at : {size_t{3}, size_t{50}, size_t{70}, size / 2, size - 1}) {
    SCOPED_TRACE(at);
    change_byte(file, at);
    load(options, Outcome::written, "the model's own files were read instead, and it was written");
    load(options, Outcome::reused);
  }
  fs::resize_file(file, size / 2);
  load(options, Outcome::written, "were written");
  fs::resize_file(file, 0);
  load(options, Outcome::written, "too few");
  fs::remove(file);
  load(options, Outcome::written);
  EXPECT_EQ(kept().size(), 1u);
}

// As after a change of the layout without a new version.
TEST_F(WeightsCacheTest, WeightsThatDoNotFitAreReadAnew) {
  const LoadOptions options = this->options(model());
  load(options, Outcome::written);
  const fs::path file = kept()[0];
  ThreadPool threads(1);
  const auto replace_parts = [&](auto&& change) {
    const std::string content = read_text_file(file, 1 << 24);
    PreparedHead head;
    std::memcpy(&head, content.data(), sizeof(head));
    PreparedTable table = read_table({content.data() + sizeof(head), head.table_bytes}, "table");
    std::string numbers(1 << 20, '\0');
    for (Part& part : table.weights.parts) {
      part.bytes = std::as_bytes(std::span(numbers)).first(*part_bytes(part.format));
    }
    change(table.weights.parts);
    write_prepared(file, table, threads);
  };
  replace_parts([](std::vector<Part>& parts) { parts.pop_back(); });
  load(options, Outcome::written, "has no ");
  replace_parts([](std::vector<Part>& parts) {
    parts[0].format.n -= 32;
    parts[0].bytes = parts[0].bytes.first(*part_bytes(parts[0].format));
  });
  load(options, Outcome::written, "embed_tokens.weight has ");
  load(options, Outcome::reused);
}

TEST_F(WeightsCacheTest, WeightsOfAnotherModelAreNotTaken) {
  const LoadOptions options = this->options(model());
  const fs::path file = load(options, Outcome::written)->weights_cache.file;
  const LoadOptions other = this->options(model("models/llama_plain"));
  fs::copy_file(load(other, Outcome::written)->weights_cache.file, file,
                fs::copy_options::overwrite_existing);
  load(options, Outcome::written, "was made from other model files than its name stands for");
}

TEST_F(WeightsCacheTest, WhereNothingCanBeWrittenTheLoadIsAsUsual) {
  const LoadOptions options = this->options(model());
  std::ofstream(directory_ / "made") << "a file where a directory should be";
  load(options, Outcome::failed, "made");
  fs::remove(directory_ / "made");
  // A directory under the file's name: it can neither be read nor replaced.
  const auto written = load(options, Outcome::written);
  fs::remove(written->weights_cache.file);
  fs::create_directory(written->weights_cache.file);
  load(options, Outcome::failed, "--weights-cache names a directory that can be written to");
}

TEST_F(WeightsCacheTest, WithoutRoomNothingIsLeftBehind) {
  const LoadOptions options = this->options(model());
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  load(options, Outcome::failed, "ulimit -f");
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_TRUE(kept().empty());
  load(options, Outcome::written);
}

TEST_F(WeightsCacheTest, SeveralMayStartAtOnce) {
  const LoadOptions options = this->options(model());
  std::vector<std::thread> starts;
  std::vector<WeightsCacheUse> uses(4);
  for (WeightsCacheUse& use : uses) {
    starts.emplace_back([&use, &options] { use = load_model(options)->weights_cache; });
  }
  for (std::thread& start : starts) start.join();
  for (const WeightsCacheUse& use : uses) {
    EXPECT_TRUE(use.outcome == Outcome::written || use.outcome == Outcome::reused) << use.problem;
    EXPECT_EQ(use.problem, "");
  }
  EXPECT_EQ(kept().size(), 1u);
  load(options, Outcome::reused);
}

TEST_F(WeightsCacheTest, MappedWeightsAreLockedToo) {
  const LoadOptions options = this->options(model());
  load(options, Outcome::written);
  const auto mapped = load(options, Outcome::reused);
  try {
    const size_t unmapped_bytes = mapped->memory.lock_all();
    EXPECT_EQ(lock_memory(*mapped), unmapped_bytes + mapped->prepared->size_bytes());
  } catch (const Error& error) {  // ulimit -l
    EXPECT_EQ(error.code(), ErrorCode::exhausted);
  }
}

TEST_F(WeightsCacheTest, TheModelWorksOnWhenTheFileIsGone) {
  const LoadOptions options = this->options(model());
  const auto first = load(options, Outcome::written);
  const auto second = load(options, Outcome::reused);
  fs::remove_all(cache_);
  expect_same_matrices(*second->decoder, *first->decoder);
}

}  // namespace
}  // namespace paceline
