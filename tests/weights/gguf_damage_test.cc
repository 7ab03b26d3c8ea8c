// GGUF files truncated or changed at every byte: each loads, or throws an Error that names it.
#include <ctime>
#include <iostream>
#include <memory>

#include "base/random.h"
#include "tests/test_scale.h"
#include "tests/weights/gguf_writer.h"
#include "tests/weights/written_files.h"
#include "weights/gguf_rows.h"

namespace paceline {
namespace {

const std::string kFile = "model.gguf";

std::string small_file() {
  return GgufWriter()
      .string("general.architecture", "llama")
      .number("general.alignment", uint32_t{32})
      .boolean("flag", true)
      .strings("tokenizer.ggml.tokens", {"<s>", "", "a"})
      .numbers<float>("tokenizer.ggml.scores", {0, -1, -2})
      .floats("output_norm.weight", {4}, {1, 2, 3, 4})
      .tensor({"token_embd.weight", GgufType::q4_0, {3, 64}, std::string(6 * 18, '\x21')})
      .tensor({"blk.0.ffn_up.weight", GgufType::q6_k, {1, 256}, std::string(210, '\x12')})
      .tensor({"blk.0.ffn_down.weight", GgufType::nvfp4, {1, 64}, std::string(36, '\x34')})
      .file();
}

// Reads every value and every row. An Error must name the file.
bool loads(std::string_view content) {
  // A buffer of exact size, so that AddressSanitizer sees a read beyond its end.
  const std::vector<char> exact(content.begin(), content.end());
  try {
    const auto contents = parse_gguf(std::as_bytes(std::span(exact)), kFile);
    unsigned sum = 0;
    for (const GgufValue& value : contents.metadata.values()) {
      for (const std::byte b : value.bytes) sum += std::to_integer<unsigned>(b);
    }
    for (const GgufTensorInfo& tensor : contents.tensors) {
      for (const std::byte b : tensor.bytes) sum += std::to_integer<unsigned>(b);
      const GgufBlockFormat* format = find_block_format(tensor.type);
      if (format == nullptr || tensor.extents.rank() == 0) continue;
      const GgufRows rows(tensor, *format, {});
      std::vector<float> values(static_cast<size_t>(rows.row_length()));
      for (int64_t row = 0; row < rows.num_rows(); ++row) rows.read_values(row, values);
    }
    volatile unsigned keep = sum;
    (void)keep;
    return true;
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::corrupt || error.code() == ErrorCode::unsupported);
    EXPECT_THAT(error.what(), testing::StartsWith(kFile + ": "));
    return false;
  }
}

TEST(GgufDamage, CutAtAnyByteIsRefused) {
  const std::string whole = small_file();
  ASSERT_TRUE(loads(whole));
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(loads(std::string_view(whole).substr(0, size))) << size;
  }
}

TEST(GgufDamage, OneChangedByteLoadsOrIsRefused) {
  const std::string whole = small_file();
  const auto num_cases = static_cast<uint64_t>(scaled(10'000, 1'000'000));
  uint64_t num_loaded = 0;
  for (uint64_t i = 0; i < num_cases; ++i) {
    const auto draw = philox4x32(17, i);
    std::string changed = whole;
    change_byte(changed, draw[0] % changed.size(), draw[1]);
    num_loaded += loads(changed) ? 1 : 0;
  }
  EXPECT_GT(num_loaded, num_cases / 20);
  EXPECT_LT(num_loaded, num_cases - num_cases / 20);
}

// Replaces each eight bytes of the head by each dangerous number.
TEST(GgufDamage, HugeNumbersAnywhereLoadOrAreRefused) {
  const std::string whole = small_file();
  const std::vector<uint64_t> numbers = {
      0,          1,         0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,   0x1000000,        1ull << 62,
      1ull << 63, ~0ull - 7, ~0ull - 31, ~0ull,      whole.size(), (1ull << 63) - 1, 1ull << 32,
      1ull << 60, 4ull << 20};
  for (size_t at = 4; at + 8 <= whole.size(); ++at) {
    for (const uint64_t number : numbers) {
      std::string changed = whole;
      changed.replace(at, 8, raw_bytes(number));
      loads(changed);
      changed = whole;
      changed.replace(at, 4, raw_bytes(static_cast<uint32_t>(number)));
      loads(changed);
    }
  }
}

// Slow checks are a defect too.
TEST(GgufDamage, ALargeHeadParsesQuickly) {
  GgufWriter writer;
  std::vector<std::string> tokens;
  for (int i = 0; i < 300'000; ++i) tokens.push_back("token" + std::to_string(i));
  writer.strings("tokenizer.ggml.tokens", tokens);
  for (int i = 0; i < 60'000; ++i) {
    writer.number("key." + std::to_string(i), i);
    writer.floats("blk." + std::to_string(i) + ".attn_q.weight", {1}, {1});
  }
  const std::string file = writer.file();
  const std::clock_t start = std::clock();  // processor time: the machine may be busy
  const GgufContents contents = parse_gguf(as_bytes_of(file), kFile);
  EXPECT_EQ(contents.tensors.size(), 60'000u);
  EXPECT_EQ(contents.metadata.strings("tokenizer.ggml.tokens")->size(), tokens.size());
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::cout << "300,000 strings, 60,000 keys and tensors: " << seconds << " s\n";
  EXPECT_LT(seconds, 10.0);  // a release build takes 0.1 s; a quadratic check minutes
}

}  // namespace
}  // namespace paceline
