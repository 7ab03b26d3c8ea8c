#include "cli/kv_reads.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

// Two layers that see everything and one that sees 8 positions; 3 heads of 16 elements.
DecoderConfig config() {
  DecoderConfig config{.num_kv_heads = 3, .head_dim = 16};
  config.layers = {{.window = 0}, {.window = 8}, {.window = 0}};
  return config;
}

int64_t bytes_of(DType dtype, const std::vector<StepRecord::Slice>& slices) {
  KvReads reads(config(), dtype, DType::f32);
  StepRecord record;
  record.slices = slices;
  reads.on_step(record);
  return reads.bytes();
}

// Keys and values of one position in one layer.
constexpr int64_t kFloats = 2 * 3 * 16 * 4;
constexpr int64_t kCodes = 2 * 3 * (16 + 4);  // with a float32 scale a head

TEST(KvReads, ADecodedRowReadsItsPositionAndThoseBeforeIt) {
  EXPECT_EQ(bytes_of(DType::f32, {{.first = 0, .count = 1}}), 3 * kFloats);
  EXPECT_EQ(bytes_of(DType::f32, {{.first = 4, .count = 1}}), 3 * 5 * kFloats);
  EXPECT_EQ(bytes_of(DType::bf16, {{.first = 4, .count = 1}}), 3 * 5 * kFloats / 2);
}

TEST(KvReads, AWindowBoundsWhatItsLayerReads) {
  EXPECT_EQ(bytes_of(DType::f32, {{.first = 7, .count = 1}}), 3 * 8 * kFloats);
  EXPECT_EQ(bytes_of(DType::f32, {{.first = 99, .count = 1}}), (2 * 100 + 8) * kFloats);
}

TEST(KvReads, CodesOf8BitsAreReadWithTheirScales) {
  EXPECT_EQ(bytes_of(DType::i8, {{.first = 99, .count = 1}}), (2 * 100 + 8) * kCodes);
}

TEST(KvReads, TheRowsOfASliceReadAPositionOnce) {
  // The oldest row of the window's layer sees positions 13 to 20, the newest ends at 24.
  EXPECT_EQ(bytes_of(DType::f32, {{.first = 20, .count = 5}}), (2 * 25 + 12) * kFloats);
  EXPECT_EQ(bytes_of(DType::f32, {{.first = 0, .count = 5}}), 3 * 5 * kFloats);
}

TEST(KvReads, AStateIsReadOnceForEachChunkOfRows) {
  DecoderConfig hybrid = config();
  hybrid.layers.push_back({.mixer = MixerKind::delta_net});
  hybrid.delta_net = {.key_heads = 1, .value_heads = 2, .key_dim = 4, .value_dim = 8, .taps = 4};
  constexpr int64_t kState = 2 * 4 * 8 * 4;
  const auto more_than_attention = [&](int64_t first, int64_t count,
                                       DType state_dtype = DType::f32) {
    KvReads reads(hybrid, DType::f32, state_dtype);
    StepRecord record;
    record.slices = {{.first = first, .count = count}};
    reads.on_step(record);
    return reads.bytes() - bytes_of(DType::f32, record.slices);
  };
  EXPECT_EQ(more_than_attention(0, 1), kState);
  EXPECT_EQ(more_than_attention(15, 1), kState);
  EXPECT_EQ(more_than_attention(15, 2), 2 * kState);
  EXPECT_EQ(more_than_attention(16, 48), 3 * kState);
  EXPECT_EQ(more_than_attention(16, 48, DType::bf16), 3 * kState / 2);
}

TEST(KvReads, SequencesAndStepsAddUp) {
  KvReads reads(config(), DType::f32, DType::f32);
  StepRecord record;
  record.slices = {{.id = 0, .first = 3, .count = 1}, {.id = 1, .first = 5, .count = 1}};
  reads.on_step(record);
  EXPECT_EQ(reads.bytes(), 3 * (4 + 6) * kFloats);
  reads.on_step(record);
  EXPECT_EQ(reads.bytes(), 2 * 3 * (4 + 6) * kFloats);
}

}  // namespace
}  // namespace paceline
