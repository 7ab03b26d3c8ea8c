#include "prepared/prepared_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <thread>

#include "base/block_sum.h"
#include "base/mapped_file.h"
#include "prepared/write_prepared.h"
#include "tests/expect_error.h"
#include "tests/test_directory.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKey = "a key\nof two lines";

// Rows whose codes are computed from their indices.
class CountingRows : public GroupedRows {
 public:
  CountingRows(int64_t num_rows, int64_t row_length, Grouping grouping,
               std::vector<int32_t> order = {})
      : num_rows_(num_rows),
        row_length_(row_length),
        grouping_(grouping),
        order_(std::move(order)) {}

  int64_t num_rows() const override { return num_rows_; }
  int64_t row_length() const override { return row_length_; }
  Grouping grouping() const override { return grouping_; }
  std::span<const int32_t> column_order() const override { return order_; }
  DType value_dtype() const override { return DType::f32; }
  void read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                  std::span<float> offsets) const override {
    for (size_t i = 0; i < codes.size(); ++i) {
      codes[i] = static_cast<uint8_t>((static_cast<size_t>(row) * 7 + i) % (1u << grouping_.bits));
    }
    for (size_t i = 0; i < scales.size(); ++i) scales[i] = 0.25f * static_cast<float>(i + 1);
    for (float& offset : offsets) offset = -0.5f * static_cast<float>(row);
  }
  void read_multiples(int64_t row, std::span<uint8_t> codes,
                      const ScaleMultiples& multiples) const override {
    read_codes(row, codes, multiples.factors, multiples.offset_factors);
    for (size_t i = 0; i < multiples.scales.size(); ++i) {
      multiples.scales[i] = static_cast<int8_t>(i + 1);
    }
  }
  void read_values(int64_t, std::span<float>) const override {}
  std::vector<std::span<const std::byte>> stored_bytes() const override { return {}; }

 private:
  int64_t num_rows_, row_length_;
  Grouping grouping_;
  std::vector<int32_t> order_;
};

// A model of seven weights, one of each kind, two of them larger than a piece.
class PreparedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    plain_ = pack_numbers(DType::bf16, 40, 67);
    large_ = pack_numbers(DType::f32, 64, 5000);
    affine_ = pack_codes({.bits = 4, .group_size = 32});
    symmetric_ = pack_codes({.bits = 8, .group_size = 64, .zero_point = 128});
    multiples_ =
        pack_codes({.bits = 6, .group_size = 16, .zero_point = 32, .groups_per_factor = 4});
    std::vector<int32_t> order(128);
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(127 - i);
    ordered_ = pack_codes({.bits = 4, .group_size = 32}, order);
    vector_ = allocate_tensor(memory_, DType::f32, {13});
    for (int i = 0; i < 13; ++i) vector_.view.elements<float>()[i] = 1.5f * static_cast<float>(i);
    table_ = {.key = kKey,
              .digest = {.low = 0x0123456789abcdef, .high = 0xfedcba9876543210},
              .weights = {
                  .parts = {matrix_part("plain", plain_), matrix_part("large", large_),
                            vector_part("vector", vector_.view), matrix_part("affine", affine_),
                            matrix_part("symmetric", symmetric_),
                            matrix_part("multiples", multiples_), matrix_part("ordered", ordered_)},
                  .num_parameters = 12345,
                  .is_quantised = true}};
  }

  PackedMatrix pack_numbers(DType dtype, int64_t n, int64_t k) {
    const OwnedTensor numbers = allocate_tensor(memory_, DType::f32, {n, k});
    for (int64_t i = 0; i < n * k; ++i) {
      numbers.view.elements<float>()[i] = static_cast<float>(i % 1009) - 500.0f;
    }
    return pack_matrix(std::span(&numbers.view, 1), dtype, memory_, threads_);
  }
  PackedMatrix pack_codes(Grouping grouping, std::vector<int32_t> order = {}) {
    const CountingRows rows(70, 128, grouping, std::move(order));
    const GroupedRows* const part = &rows;
    return pack_groups(std::span(&part, 1), ActivationType::int8, memory_, threads_);
  }

  uint64_t write() { return write_prepared(path_, table_, threads_); }
  PreparedFile open() { return PreparedFile(path_, kKey, threads_); }
  std::string content() const { return read_text_file(path_, 1 << 26); }
  void write_content(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  void expect_refused(const std::string& what) {
    expect_error(ErrorCode::corrupt, {path_.string(), what}, [&] { open(); });
  }

  static void expect_same(const PackedMatrix& found, const PackedMatrix& expected) {
    EXPECT_EQ(found.dtype, expected.dtype);
    EXPECT_EQ(found.n, expected.n);
    EXPECT_EQ(found.k, expected.k);
    ASSERT_EQ(found.groups.has_value(), expected.groups.has_value());
    if (found.groups) {
      EXPECT_EQ(found.groups->grouping, expected.groups->grouping);
    }
    ASSERT_EQ(found.bytes(), expected.bytes());
    EXPECT_EQ(std::memcmp(found.storage.get(), expected.storage.get(),
                          static_cast<size_t>(expected.bytes())),
              0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(found.storage.get()) % kPartAlignment, 0u);
  }

  Memory memory_;
  ThreadPool threads_{2};
  TestDirectory temporary_;
  fs::path directory_ = temporary_.path();
  fs::path path_ = directory_ / "weights";
  PackedMatrix plain_, large_, affine_, symmetric_, multiples_, ordered_;
  OwnedTensor vector_;
  PreparedTable table_;
};

TEST_F(PreparedFileTest, HasEveryWeightAsItWas) {
  const uint64_t written = write();
  EXPECT_EQ(written, fs::file_size(path_));
  const PreparedFile file(path_, kKey, threads_);
  EXPECT_EQ(file.size_bytes(), fs::file_size(path_));
  EXPECT_EQ(file.digest(), table_.digest);
  EXPECT_EQ(file.num_parameters(), 12345);
  EXPECT_TRUE(file.is_quantised());
  expect_same(file.matrix("plain", 67, ActivationType::int8), plain_);
  expect_same(file.matrix("large", 5000, ActivationType::int8), large_);
  expect_same(file.matrix("affine", 128, ActivationType::int8), affine_);
  expect_same(file.matrix("multiples", 128, ActivationType::int8), multiples_);
  expect_same(file.matrix("symmetric", 128, ActivationType::int8), symmetric_);
  expect_same(file.matrix("ordered", 128, ActivationType::int8), ordered_);
  EXPECT_EQ(file.matrix("ordered", 128, ActivationType::int8).input_order()[5], 122);
  const OwnedTensor vector = file.vector("vector", 13);
  EXPECT_EQ(vector.view.shape(), (Extents{13}));
  EXPECT_EQ(std::memcmp(vector.view.raw(), vector_.view.raw(), 13 * sizeof(float)), 0);
}

// Files written by other builds of this layout version are trusted.
TEST_F(PreparedFileTest, PanelsHaveTheBytesOfTheirVersion) {
  const auto sum = [](const PackedMatrix& matrix) {
    return block_sum(matrix_part("", matrix).bytes, 0);
  };
  const std::vector<uint64_t> found = {sum(plain_), sum(large_), sum(affine_), sum(symmetric_),
                                       sum(multiples_)};
  EXPECT_EQ(kPanelLayoutVersion, 2);
  EXPECT_EQ(found,
            (std::vector<uint64_t>{0xc8672a446ea95678, 0xebe4d20138421496, 0xa632ed6e4cf257df,
                                   0xeeb3f7910a312a42, 0xdf15a196ec208209}))
      << "packed matrices have other bytes than before: raise kPanelLayoutVersion, then change "
         "this test";
}

TEST_F(PreparedFileTest, RoundsInputsAsItIsTold) {
  write();
  const PreparedFile file(path_, kKey, threads_);
  for (const ActivationType type : {ActivationType::int8, ActivationType::bf16}) {
    EXPECT_EQ(file.matrix("affine", 128, type).groups->activations, type);
  }
}

TEST_F(PreparedFileTest, TakesNoAccountedMemoryAndOutlivesItsName) {
  write();
  const size_t before = memory_.stats().active_bytes;
  const PreparedFile file(path_, kKey, threads_);
  fs::remove(path_);
  const PackedMatrix lent = file.matrix("large", 5000, ActivationType::int8);
  expect_same(lent, large_);
  EXPECT_EQ(memory_.stats().active_bytes, before);
}

TEST_F(PreparedFileTest, RefusesWhatItDoesNotHave) {
  write();
  const PreparedFile file(path_, kKey, threads_);
  const auto refused = [&](const std::string& what, auto&& ask) {
    expect_error(ErrorCode::corrupt, {path_.string(), what}, ask);
  };
  refused("has no matrix head", [&] { file.matrix("head", 67, ActivationType::int8); });
  refused("has no matrix vector", [&] { file.matrix("vector", 13, ActivationType::int8); });
  refused("has no vector plain", [&] { file.vector("plain", 40); });
  refused("plain has 67 inputs, expected 68",
          [&] { file.matrix("plain", 68, ActivationType::int8); });
  refused("vector has 13 elements, expected 12", [&] { file.vector("vector", 12); });
  refused("plain has 40 outputs, expected 41", [&] { file.refuse("plain", 40, 41); });
}

TEST_F(PreparedFileTest, RefusesAnOrderThatIsNone) {
  auto* const panels = static_cast<std::byte*>(ordered_.storage.get());
  const int32_t twice = 0;
  for (const int32_t index : {twice, 128, -1}) {
    std::memcpy(panels + ordered_.bytes() - 8, &index, sizeof(index));
    write();
    const PreparedFile file(path_, kKey, threads_);
    expect_error(ErrorCode::corrupt, {path_.string(), "ordered has an order of its inputs"},
                 [&] { file.matrix("ordered", 128, ActivationType::int8); });
  }
}

TEST_F(PreparedFileTest, IsNotFoundOrOfAnotherKey) {
  expect_error(ErrorCode::not_found, {path_.string()}, [&] { open(); });
  write();
  expect_error(ErrorCode::corrupt, {"was made from other model files"},
               [&] { PreparedFile(path_, "another key", threads_); });
}

// Changes every bit of head and table, and a bit of every stored line, padding included.
TEST_F(PreparedFileTest, FindsDamageWhereverItIs) {
  table_.weights.parts.erase(table_.weights.parts.begin() + 1);  // the large one
  write();
  const std::string whole = content();
  PreparedHead head;
  std::memcpy(&head, whole.data(), sizeof(head));
  const size_t used_front = sizeof(head) + head.table_bytes + 8 * head.num_sums;
  for (size_t at = 0; at < whole.size(); at += at < used_front ? 1 : 123) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    write_content(damaged);
    const std::string what = at < sizeof(uint64_t)  ? "isn't a file of prepared weights"
                             : at < sizeof(head)    ? "its head is damaged"
                             : at < head.first_part ? "its table is damaged"
                                                    : "is damaged";
    EXPECT_THAT(error_text([&] { open(); }), testing::HasSubstr(what));
  }
  write_content(whole);
  open();
}

TEST_F(PreparedFileTest, FindsExchangedPiecesAndSaysWhichIsDamaged) {
  write();
  std::string content_of_both = content();
  PreparedHead head;
  std::memcpy(&head, content_of_both.data(), sizeof(head));
  const size_t large = head.first_part + stored_bytes(static_cast<uint64_t>(plain_.bytes()));
  std::string first = content_of_both.substr(large, 4096);
  content_of_both.replace(large, 4096, content_of_both.substr(large + kPieceBytes, 4096));
  write_content(content_of_both);
  expect_refused("piece 2 of");
}

TEST_F(PreparedFileTest, IsRefusedAtAnyOtherLength) {
  write();
  const std::string whole = content();
  for (const size_t size : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{4096},
                            whole.size() / 2, whole.size() - 64, whole.size() - 1}) {
    write_content(whole.substr(0, size));
    expect_refused(size < 64 ? "bytes, too few" : "were written");
  }
  write_content(whole + std::string(64, '\0'));
  expect_refused("were written");
}

// Correct sums of wrong contents, as another program might write.
TEST_F(PreparedFileTest, BelievesNoTable) {
  write();
  const std::string whole = content();
  PreparedHead head;
  std::memcpy(&head, whole.data(), sizeof(head));
  const std::string table = whole.substr(sizeof(head), head.table_bytes);
  const auto expect_refused_as = [&](const std::string& from, const std::string& to,
                                     const std::string& what) {
    SCOPED_TRACE(to);
    std::string other = table;
    ASSERT_NE(other.find(from), std::string::npos);
    other.replace(other.find(from), from.size(), to);
    std::string bytes = whole;
    PreparedHead forged = head;
    const size_t room = rounded_up(head.table_bytes, 8);
    ASSERT_LE(other.size(), room);
    other.resize(head.table_bytes, ' ');
    bytes.replace(sizeof(head), other.size(), other);
    const auto front = std::as_bytes(std::span(bytes)).first(head.first_part).subspan(sizeof(head));
    forged.front_sum = block_sum(front, kFrontSeed);
    forged.head_sum = sum_of_head(forged);
    std::memcpy(bytes.data(), &forged, sizeof(forged));
    write_content(bytes);
    EXPECT_THAT(error_text([&] { open(); }), testing::HasSubstr(what));
  };
  expect_refused_as(R"("n":40)", R"("n":-1)", "can't be");
  expect_refused_as(R"("n":64)", R"("n":96)", "is beyond its end");
  expect_refused_as(R"("n":64)", R"("n":32)", "is longer than its table requires");
  expect_refused_as(R"("k":5000)", R"("k":6.5)", "k");
  expect_refused_as(R"("k":5000)", R"("k":9e99)", "k");
  expect_refused_as(R"("group_size":32)", R"("group_size":0)", "can't be");
  expect_refused_as(R"("group_size":32)", R"("group_size":33)", "can't be");
  expect_refused_as(R"("bits":4)", R"("bits":9)", "can't be");
  expect_refused_as(R"("groups_per_factor":4)", R"("groups_per_factor":3)", "can't be");
  expect_refused_as(R"("groups_per_factor":4)", R"("groups_per_factor":0)", "can't be");
  expect_refused_as(R"("zero_point":128)", R"("zero_point":256)",
                    "zero_point: found 256, expected an integer from 0 to 255");
  expect_refused_as(R"("bits":8)", R"("bits":7)", "can't be");  // of the one around 128
  expect_refused_as(R"("dtype":"float32")", R"("dtype":"int32")", "can't be");
  expect_refused_as(R"("name":"large")", R"("name":"plain")", "has plain twice");
  expect_refused_as(R"("name":"large")", R"("Name":"large")", "parts[1].name: missing");
  expect_refused_as(R"("digest":"fe)", R"("digest":"xx)", "expected 32 hex digits");
  expect_refused_as(R"({"key")", R"(["key")", "");
}

TEST_F(PreparedFileTest, MayBeWrittenBySeveralAtOnceAndReadMeanwhile) {
  write();
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&] {
      ThreadPool threads(1);
      for (int n = 0; n < 3; ++n) write_prepared(path_, table_, threads);
    });
  }
  for (int n = 0; n < 10; ++n) {
    const PreparedFile file(path_, kKey, threads_);
    expect_same(file.matrix("large", 5000, ActivationType::int8), large_);
  }
  for (std::thread& other : others) other.join();
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()), 1);
}

TEST_F(PreparedFileTest, AWriteThatFailsLeavesWhatWasThere) {
  write();
  const std::string before = content();
  fs::create_directory(directory_ / "taken");
  path_ = directory_ / "taken";
  expect_error(ErrorCode::invalid, {"taken: can't be given its name"}, [&] { write(); });
  path_ = directory_ / "nowhere" / "weights";
  expect_error(ErrorCode::invalid, {"weights: can't be made"}, [&] { write(); });
  path_ = directory_ / "weights";
  EXPECT_EQ(content(), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()), 2);
}

}  // namespace
}  // namespace paceline
