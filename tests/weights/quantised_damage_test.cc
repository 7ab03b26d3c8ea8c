// Damaged files of published formats are read, or refused with an Error that names them.
#include <algorithm>
#include <filesystem>

#include "base/mapped_file.h"
#include "base/random.h"
#include "tests/source_path.h"
#include "tests/test_scale.h"
#include "tests/weights/written_files.h"
#include "weights/checkpoint.h"
#include "weights/published_quantisation.h"
#include "weights/quantised_checkpoint.h"
#include "weights/safetensors.h"

namespace paceline {
namespace {

const std::string kOrigin = "damaged";

struct HeldTensor {
  CheckpointEntry entry;
  std::vector<char>
      bytes;  // exactly the tensor's, so that AddressSanitizer sees a read beyond them
};

// A checkpoint of tensors in memory.
class HeldTensors : public Checkpoint {
 public:
  explicit HeldTensors(std::vector<HeldTensor> tensors) : tensors_(std::move(tensors)) {
    std::ranges::sort(tensors_, {}, [](const HeldTensor& held) { return held.entry.name; });
    for (const HeldTensor& held : tensors_) entries_.push_back(held.entry);
  }

  std::string origin() const override { return kOrigin; }
  std::span<const MappedFile> files() const override { return {}; }
  const std::vector<CheckpointEntry>& entries() const override { return entries_; }
  bool contains(std::string_view name) const override { return find(name) != nullptr; }
  std::optional<Extents> shape_of(std::string_view name) const override {
    const HeldTensor* const held = find(name);
    return held == nullptr ? std::nullopt : std::optional(held->entry.shape);
  }
  Tensor read_tensor(std::string_view name, const Extents& shape, ReadAs /*as*/) override {
    const HeldTensor* const held = find(name);
    PL_CHECK(held != nullptr && held->entry.shape == shape, "read what isn't there");
    return {const_cast<char*>(held->bytes.data()), held->entry.dtype, shape};
  }
  std::shared_ptr<const GroupedRows> read_grouped(std::string_view /*name*/,
                                                  const Extents& /*shape*/) override {
    return nullptr;
  }
  void release(std::string_view /*name*/) override {}

 private:
  const HeldTensor* find(std::string_view name) const {
    const auto at = std::ranges::find_if(
        tensors_, [&](const HeldTensor& held) { return held.entry.name == name; });
    return at == tensors_.end() ? nullptr : &*at;
  }

  std::vector<HeldTensor> tensors_;
  std::vector<CheckpointEntry> entries_;
};

std::filesystem::path golden_folder(const std::string& name) {
  return std::filesystem::path(source_path("tests/goldens/quantised")) / name;
}

std::vector<HeldTensor> golden_tensors(const std::string& name) {
  const MappedFile file(golden_folder(name) / "model.safetensors");
  std::vector<HeldTensor> tensors;
  for (const SafetensorsTensor& tensor : parse_safetensors_header(file.bytes(), name)) {
    const auto* const bytes = reinterpret_cast<const char*>(tensor.bytes.data());
    tensors.push_back({{tensor.name, tensor.dtype, tensor.shape, tensor.note},
                       std::vector<char>(bytes, bytes + tensor.bytes.size())});
  }
  return tensors;
}

PublishedQuantisation golden_settings(const std::string& name) {
  auto settings = *PublishedQuantisation::find(ModelFiles(golden_folder(name)));
  settings.keeps_float8 = true;
  return settings;
}

// Reads every matrix as numbers and as codes.
void read_all(std::vector<HeldTensor> tensors, const PublishedQuantisation& settings) {
  Memory memory;
  ThreadPool threads(1);
  HeldTensors source(std::move(tensors));
  QuantisedCheckpoint checkpoint(source, settings, memory, threads);
  for (const CheckpointEntry& entry : checkpoint.entries()) {
    checkpoint.read(entry.name, entry.shape);
    const auto rows = checkpoint.read_grouped(entry.name, entry.shape);
    if (rows == nullptr) continue;
    const Grouping grouping = rows->grouping();
    const auto length = static_cast<size_t>(rows->row_length());
    const auto num_groups = length / static_cast<size_t>(grouping.group_size);
    std::vector<uint8_t> codes(length);
    std::vector<float> scales(num_groups), offsets(num_groups);
    for (int64_t row = 0; row < rows->num_rows(); ++row) {
      rows->read_codes(row, codes, scales, offsets);
      for (const uint8_t code : codes) EXPECT_LT(code, 1 << grouping.bits);
    }
    checkpoint.release(entry.name);
  }
}

bool reads(std::vector<HeldTensor> tensors, const PublishedQuantisation& settings) {
  try {
    read_all(std::move(tensors), settings);
    return true;
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::corrupt || error.code() == ErrorCode::unsupported)
        << error.what();
    EXPECT_THAT(error.what(), testing::StartsWith(kOrigin + ": tensor \""));
    return false;
  }
}

void resize(HeldTensor& held) {
  size_t bytes = dtype_bytes(held.entry.dtype);
  for (const int64_t size : held.entry.shape) bytes *= static_cast<size_t>(size);
  held.bytes.resize(bytes);
}

// One change of a tensor: its bytes, its dtype, its shape, its name, or that it is there.
void damage(std::vector<HeldTensor>& tensors, const std::array<uint32_t, 4>& draw) {
  constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::i8,      DType::i32,
                              DType::u8,  DType::u32, DType::i64,  DType::f8_e4m3, DType::f8_e8m0};
  HeldTensor& held = tensors[draw[0] % tensors.size()];
  Extents& shape = held.entry.shape;
  switch (draw[1] % 8) {
    case 0:
      held.entry.dtype = kTypes[draw[2] % std::size(kTypes)];
      return resize(held);
    case 1:
      if (shape.rank() == 0) return;
      shape[static_cast<int>(draw[2] % static_cast<uint32_t>(shape.rank()))] = draw[3] % 70;
      return resize(held);
    case 2:
      if (shape.rank() == 2) shape = {shape[1], shape[0]};
      return;
    case 3:
      shape = {shape.rank() == 0 ? 1 : shape[0], 1, 3};
      return resize(held);
    case 4:
      std::swap(held.entry.name, tensors[draw[2] % tensors.size()].entry.name);
      return;
    case 5:
      tensors.erase(tensors.begin() + draw[0] % tensors.size());
      return;
    default:
      if (!held.bytes.empty()) {
        held.bytes[draw[2] % held.bytes.size()] ^= static_cast<char>(1 + draw[3] % 255);
      }
  }
}

class QuantisedDamage : public testing::TestWithParam<std::string> {};

TEST_P(QuantisedDamage, IsReadOrRefusedByName) {
  constexpr uint64_t kSeed = 45;
  const auto num_cases = static_cast<uint64_t>(scaled(250, 50'000));
  const std::vector<HeldTensor> whole = golden_tensors(GetParam());
  const PublishedQuantisation settings = golden_settings(GetParam());
  ASSERT_TRUE(reads(whole, settings));
  uint64_t num_read = 0;
  for (uint64_t i = 0; i < num_cases; ++i) {
    SCOPED_TRACE(i);
    std::vector<HeldTensor> changed = whole;
    damage(changed, philox4x32(kSeed, i));
    num_read += reads(std::move(changed), settings) ? 1 : 0;
  }
  EXPECT_GT(num_read, num_cases / 10);
  EXPECT_LT(num_read, num_cases * 9 / 10);
}

INSTANTIATE_TEST_SUITE_P(Formats, QuantisedDamage,
                         testing::Values("fp8", "compressed_tensors", "gptq", "awq", "bitsandbytes",
                                         "hqq", "modelopt", "mlx", "torchao", "torchao_described"),
                         [](const auto& param) { return param.param; });

// The tensor of this name of a golden, changed.
void expect_refused(const std::string& golden, const std::string& name,
                    const std::function<void(HeldTensor&)>& change,
                    const std::vector<std::string>& message) {
  std::vector<HeldTensor> tensors = golden_tensors(golden);
  const auto at = std::ranges::find_if(
      tensors, [&](const HeldTensor& held) { return held.entry.name == name; });
  ASSERT_NE(at, tensors.end()) << name;
  change(*at);
  std::erase_if(tensors, [](const HeldTensor& held) { return held.entry.name.empty(); });
  SCOPED_TRACE(name);
  expect_error(ErrorCode::corrupt, message, [&] { read_all(tensors, golden_settings(golden)); });
}

template <class T>
auto with_element(size_t index, T value) {
  return [=](HeldTensor& held) {
    std::memcpy(held.bytes.data() + index * sizeof(T), &value, sizeof(T));
  };
}

void remove_tensor(HeldTensor& held) { held.entry.name.clear(); }

TEST(QuantisedDamageMessages, NameThePartAndWhatIsExpected) {
  const std::string q = "model.layers.0.q_proj.", k = "model.layers.1.k_proj.";
  expect_refused("gptq", k + "g_idx", with_element<int32_t>(5, 4),
                 {k + "g_idx", "found group 4 of column 5, expected 0 to 3"});
  expect_refused("gptq", k + "g_idx", with_element<int32_t>(5, -1), {"found group -1 of column 5"});
  expect_refused("gptq", k + "scales", with_element<uint16_t>(3, 0x7C00),
                 {k + "scales", "isn't a finite number"});
  expect_refused("gptq", k + "scales", remove_tensor, {k + "scales", "is missing"});
  expect_refused("gptq", k + "qzeros",
                 [](HeldTensor& held) {
                   held.entry.shape = {2, 8};
                 },
                 {k + "qzeros", "[2, 8]", "[4, 32 * bits / 32]"});
  expect_refused("awq", q + "qzeros", remove_tensor, {q + "qzeros", "is missing"});
  expect_refused("compressed_tensors", q + "weight_shape", with_element<int64_t>(1, INT64_MAX),
                 {q + "weight_shape", "9223372036854775807", "[8, 8]"});
  expect_refused("compressed_tensors", q + "weight_scale",
                 [](HeldTensor& held) { held.entry.shape = {16}; },
                 {q + "weight_scale", "[16]", "doesn't divide the matrix [8, 64]"});
  const std::string fp8 = "model.layers.0.mlp.up_proj.";
  expect_refused("fp8", fp8 + "weight_scale_inv", with_element<float>(0, std::nanf("")),
                 {fp8 + "weight_scale_inv", "isn't a finite number"});
  expect_refused("fp8", fp8 + "weight_scale_inv", remove_tensor,
                 {fp8 + "weight_scale", "is missing"});
  const std::string nf4 = "model.layers.1.nf4_proj.weight";
  expect_refused("bitsandbytes", nf4 + ".quant_state.bitsandbytes__nf4",
                 [](HeldTensor& held) { held.bytes[0] = '['; }, {nf4, "quant_state"});
  expect_refused("bitsandbytes", nf4 + ".nested_absmax", with_element<float>(0, INFINITY),
                 {nf4 + ".nested_absmax", "isn't finite"});
  expect_refused("bitsandbytes", nf4,
                 [](HeldTensor& held) {
                   held.entry.shape = {575, 1};
                 },
                 {nf4, "[575, 1]", "[24, 48]"});
  const std::string hqq = "model.layers.1.b4_proj.";
  expect_refused("hqq", hqq + "nbits", with_element<int32_t>(0, 7), {hqq + "nbits", "found 7"});
  expect_refused("hqq", hqq + "shape", with_element<int64_t>(0, int64_t{1} << 62),
                 {hqq + "shape", "4611686018427387904"});
  expect_refused("modelopt", "model.layers.0.k_proj.weight_scale_2", with_element<float>(0, 0.0f),
                 {"k_proj.weight_scale_2", "found 0, expected a finite number other than zero"});
  expect_refused("mlx", "model.layers.0.mxfp4_proj.scales",
                 [](HeldTensor& held) { held.bytes[3] = static_cast<char>(255); },
                 {"mxfp4_proj.scales", "isn't a finite number"});
}

TEST(QuantisedDamageMessages, MetadataOfTorchaoIsChecked) {
  const std::string q = "model.layers.0.q_proj._weight_", o = "model.layers.0.o_proj._weight_";
  const auto noting = [](const std::string& note) {
    return [note](HeldTensor& held) { held.entry.note = note; };
  };
  expect_refused("torchao_described", q + "qdata", noting("{"), {q + "qdata", "metadata"});
  expect_refused("torchao_described", q + "qdata", noting("{\"_data\": {}}"), {"_type"});
  expect_refused("torchao_described", q + "qdata",
                 noting(R"({"_type": "Int4Tensor", "_data": {"shape": [8, -1]}})"),
                 {q + "qdata", "_data.shape", "sizes of at least 1"});
  // A shape that the tiles don't hold.
  expect_refused("torchao_described", o + "qdata",
                 noting(R"({"_type": "Int4TilePackedTo4dTensor", "_data": {"shape": [17, 160]}})"),
                 {o + "qdata", "[2, 8, 32, 4]", "[17, 160]"});
  expect_refused("torchao_described", o + "scale_and_zero", remove_tensor,
                 {"weight_scale_and_zero", "is missing"});
  expect_refused("torchao_described", "model.layers.1.k_proj._weight_scale",
                 [](HeldTensor& held) {
                   held.entry.shape = {64, 31};
                   resize(held);
                 },
                 {"k_proj._weight_scale", "[64, 31]", "tiles of 128 x 4"});
  expect_refused("torchao_described", "model.layers.0.v_proj._weight_act_pre_scale",
                 with_element<uint16_t>(3, 0x7F80), {"act_pre_scale", "isn't a finite number"});
  EXPECT_FALSE(reads(
      [] {
        auto tensors = golden_tensors("torchao_described");
        for (HeldTensor& held : tensors) {
          if (!held.entry.note.empty()) held.entry.note = R"({"_type": "Int4PreshuffledTensor"})";
        }
        return tensors;
      }(),
      golden_settings("torchao_described")));
}

TEST(QuantisedDamageMessages, AnIndexOfGroupsThatIsNotUsedIsLeftOut) {
  std::vector<HeldTensor> tensors = golden_tensors("compressed_tensors");
  const auto settings = golden_settings("compressed_tensors");
  const auto index = std::ranges::find_if(tensors, [](const HeldTensor& held) {
    return held.entry.name == "model.layers.4.q_proj.weight_g_idx";
  });
  ASSERT_NE(index, tensors.end());
  const auto is_ordered = [&] {
    Memory memory;
    ThreadPool threads(1);
    HeldTensors source(tensors);
    QuantisedCheckpoint checkpoint(source, settings, memory, threads);
    return !checkpoint.read_grouped("model.layers.4.q_proj.weight", {4, 64})
                ->column_order()
                .empty();
  };
  EXPECT_TRUE(is_ordered());
  std::ranges::fill(index->bytes, static_cast<char>(0xFF));  // -1
  EXPECT_FALSE(is_ordered());
}

TEST(QuantisedDamageMessages, GroupsOfDifferentSizesAreExpanded) {
  std::vector<HeldTensor> tensors = golden_tensors("gptq");
  const auto index = std::ranges::find_if(tensors, [](const HeldTensor& held) {
    return held.entry.name == "model.layers.1.k_proj.g_idx";
  });
  ASSERT_NE(index, tensors.end());
  const auto description = [&] {
    Memory memory;
    ThreadPool threads(1);
    HeldTensors source(tensors);
    return QuantisedCheckpoint(source, golden_settings("gptq"), memory, threads).description();
  };
  EXPECT_THAT(description(), testing::HasSubstr("packed (4 bits in groups of 32, reordered)"));
  const int32_t first = 0, other = 1;
  std::memcpy(index->bytes.data(), &first, sizeof(first));
  std::memcpy(index->bytes.data() + sizeof(first), &first, sizeof(first));
  std::memcpy(index->bytes.data() + 2 * sizeof(first), &other, sizeof(other));
  std::memcpy(index->bytes.data() + 3 * sizeof(first), &first, sizeof(first));
  EXPECT_THAT(description(),
              testing::HasSubstr("expanded to float16 (4 bits in groups of 32, reordered)"));
}

}  // namespace
}  // namespace paceline
