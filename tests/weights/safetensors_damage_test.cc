// Files truncated or changed at every byte: each loads, or throws an Error that names it.
#include <ctime>
#include <iostream>

#include "base/random.h"
#include "tests/test_scale.h"
#include "tests/weights/written_files.h"
#include "weights/checkpoint.h"
#include "weights/safetensors.h"

namespace paceline {
namespace {

const std::string kDamagedFile = "model.safetensors";

std::vector<FileTensor> some_tensors() {
  return {
      {"model.embed_tokens.weight", "BF16", {3, 2}, bytes_of<uint16_t>({1, 2, 3, 4, 5, 6})},
      {"model.norm.weight", "F32", {2}, bytes_of<float>({1, -1})},
      {"empty", "F32", {0, 2}, ""},
      {"lm_head.weight", "F16", {1, 3}, bytes_of<uint16_t>({7, 8, 9})},
  };
}

// A copy of exact size on the heap, so that AddressSanitizer sees a read beyond its end.
class ExactBytes {
 public:
  explicit ExactBytes(std::string_view text)
      : size_(text.size()), bytes_(new std::byte[text.size()]) {
    std::memcpy(bytes_.get(), text.data(), size_);
  }
  std::span<const std::byte> span() const { return {bytes_.get(), size_}; }

 private:
  size_t size_;
  std::unique_ptr<std::byte[]> bytes_;
};

// Whether the file loads. Reads every byte of every view; an Error must name the file.
bool damaged_file_loads(std::string_view content) {
  const ExactBytes file(content);
  try {
    unsigned sum = 0;
    for (const SafetensorsTensor& tensor : parse_safetensors_header(file.span(), kDamagedFile)) {
      for (const std::byte b : tensor.bytes) sum += std::to_integer<unsigned>(b);
      EXPECT_EQ(tensor.bytes.size(), Tensor(nullptr, tensor.dtype, tensor.shape).size_bytes());
    }
    volatile unsigned keep = sum;
    (void)keep;
    return true;
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::corrupt || error.code() == ErrorCode::unsupported);
    EXPECT_THAT(error.what(), testing::StartsWith(kDamagedFile + ": "));
    return false;
  }
}

TEST(SafetensorsDamage, CutAtAnyByteIsRefusedNamingTheTensorOrField) {
  const std::string whole = safetensors_file(some_tensors(), 3);
  ASSERT_TRUE(damaged_file_loads(whole));
  const size_t header_end = 8 + static_cast<size_t>(static_cast<unsigned char>(whole[0])) +
                            256 * static_cast<size_t>(static_cast<unsigned char>(whole[1]));
  ASSERT_EQ(header_end + 26, whole.size());
  for (size_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    const ExactBytes file(whole.substr(0, size));
    expect_error(ErrorCode::corrupt,
                 {kDamagedFile, size < header_end ? "header length: " : "tensor \""},
                 [&] { parse_safetensors_header(file.span(), kDamagedFile); });
  }
}

TEST(SafetensorsDamage, CutFilesAreNamedByOpenCheckpoint) {
  const TestDirectory directory;
  const std::string whole = safetensors_file(some_tensors());
  for (size_t size = 0; size < whole.size(); size += 3) {
    directory.write(kDamagedFile, whole.substr(0, size));
    expect_error(ErrorCode::corrupt, {(directory.path() / kDamagedFile).string() + ": "},
                 [&] { open_checkpoint(directory.path()); });
  }
  directory.write(kDamagedFile, whole);
  EXPECT_EQ(open_checkpoint(directory.path())->entries().size(), 4u);
}

TEST(SafetensorsDamage, HeaderCutShortWithItsLengthMendedIsRefused) {
  const std::string whole = safetensors_file(some_tensors());
  const std::string header = whole.substr(8, whole.size() - 8 - 26);
  const std::string content = whole.substr(whole.size() - 26);
  for (size_t size = 0; size < header.size(); ++size) {
    EXPECT_FALSE(damaged_file_loads(safetensors_file(header.substr(0, size), content))) << size;
  }
}

TEST(SafetensorsDamage, OneChangedByteLoadsOrIsRefused) {
  constexpr uint64_t kSeed = 9;
  const auto num_cases = static_cast<uint64_t>(scaled(5'000, 500'000));
  const std::string whole = safetensors_file(some_tensors(), 5);
  uint64_t num_loaded = 0;
  for (uint64_t i = 0; i < num_cases; ++i) {
    const auto draw = philox4x32(kSeed, i);
    std::string changed = whole;
    change_byte(changed, draw[0] % changed.size(), draw[1]);
    num_loaded += damaged_file_loads(changed) ? 1 : 0;
  }
  // Changes of the data and of names load, most others don't.
  EXPECT_GT(num_loaded, num_cases / 20);
  EXPECT_LT(num_loaded, num_cases / 2);
}

TEST(SafetensorsDamage, SeveralChangedBytesLoadOrAreRefused) {
  const std::string whole = safetensors_file(some_tensors());
  constexpr std::string_view kLikely = "{}[]\",:0123456789-.eE\\u x\0\xFF";
  const auto num_cases = static_cast<uint64_t>(scaled(5'000, 500'000));
  for (uint64_t i = 0; i < num_cases; ++i) {
    std::string changed = whole;
    for (uint64_t j = 0; j < 2 + i % 6; ++j) {
      const auto draw = philox4x32(11, i, j);
      changed[8 + draw[0] % (changed.size() - 8)] = kLikely[draw[1] % kLikely.size()];
    }
    damaged_file_loads(changed);
  }
}

// JSON texts with a token changed, doubled or omitted.
TEST(SafetensorsDamage, MutatedJsonLoadsOrIsRefused) {
  const std::vector<std::string> tokens = {"{",
                                           "\"a\"",
                                           ":",
                                           "{",
                                           "\"dtype\"",
                                           ":",
                                           "\"F32\"",
                                           ",",
                                           "\"shape\"",
                                           ":",
                                           "[",
                                           "2",
                                           ",",
                                           "1",
                                           "]",
                                           ",",
                                           "\"data_offsets\"",
                                           ":",
                                           "[",
                                           "0",
                                           ",",
                                           "8",
                                           "]",
                                           "}",
                                           ",",
                                           "\"__metadata__\"",
                                           ":",
                                           "{",
                                           "\"k\"",
                                           ":",
                                           "\"v\"",
                                           "}",
                                           "}"};
  const std::vector<std::string> others = {"{",
                                           "}",
                                           "[",
                                           "]",
                                           ",",
                                           ":",
                                           "\"a\"",
                                           "\"\"",
                                           "\"dtype\"",
                                           "\"shape\"",
                                           "null",
                                           "0",
                                           "-1",
                                           "1e400",
                                           "1.",
                                           "true",
                                           "nul",
                                           "\"",
                                           "\\",
                                           "\"BF16\"",
                                           "\"I64\"",
                                           "4",
                                           "18446744073709551615",
                                           "18446744073709551616",
                                           "-9223372036854775808",
                                           "1e2",
                                           "\"\\ud800\"",
                                           "\"\\u0000\"",
                                           "[[[[[[[[",
                                           "{\"x\":",
                                           "\t",
                                           ""};
  const std::string content(8, 'x');
  auto joined = [](const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& part : parts) text += part;
    return text;
  };
  ASSERT_TRUE(damaged_file_loads(safetensors_file(joined(tokens), content)));
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::vector<std::string> changed = tokens;
    changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
    damaged_file_loads(safetensors_file(joined(changed), content));
    for (size_t j = 0; j < tokens.size(); ++j) {
      changed = tokens;
      std::swap(changed[i], changed[j]);
      damaged_file_loads(safetensors_file(joined(changed), content));
    }
    for (const std::string& other : others) {
      changed = tokens;
      changed[i] = other;
      damaged_file_loads(safetensors_file(joined(changed), content));
      changed[i] = other + tokens[i];
      damaged_file_loads(safetensors_file(joined(changed), content));
    }
  }
}

// Slow checks are a defect too.
TEST(SafetensorsDamage, AHundredThousandTensorsParseQuickly) {
  std::vector<FileTensor> tensors;
  for (int i = 0; i < 100'000; ++i) {
    tensors.push_back(
        {"model.layers." + std::to_string(i) + ".self_attn.q_proj.weight", "BF16", {1, 2}, "1234"});
  }
  const std::string file = safetensors_file(tensors);
  const std::clock_t start = std::clock();  // processor time: the machine may be busy
  EXPECT_EQ(parse_safetensors_header(as_bytes_of(file), kDamagedFile).size(), tensors.size());
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::cout << "100,000 tensors, " << file.size() << " bytes: " << seconds << " s\n";
  EXPECT_LT(seconds, 10.0);  // a release build takes 0.1 s; a quadratic check minutes
}

}  // namespace
}  // namespace paceline
