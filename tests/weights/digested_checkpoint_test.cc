#include "weights/digested_checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>

#include "weights/quantizing_checkpoint.h"

namespace paceline {
namespace {

struct Read {
  const char* name;
  Extents shape;
};

Hash128 digest_of(uint64_t seed, std::initializer_list<Read> reads, int num_threads = 1,
                  DType dtype = DType::bf16) {
  Memory memory;
  ThreadPool threads(num_threads);
  const auto source = make_dummy_checkpoint(dtype, seed, memory);
  DigestedCheckpoint digested(*source, threads);
  for (const Read& read : reads) digested.read(read.name, read.shape);
  return digested.digest();
}

TEST(DigestedCheckpoint, ThreadsOrderAndRepetitionDoNotShow) {
  const Read large{"large", {1024, 1025}}, small{"small", {3, 5}};  // larger than a piece
  const Hash128 digest = digest_of(1, {large, small});
  EXPECT_EQ(digest_of(1, {large, small}, 3), digest);
  EXPECT_EQ(digest_of(1, {small, large}), digest);
  EXPECT_EQ(digest_of(1, {small, large, small}), digest);
}

TEST(DigestedCheckpoint, NamesShapesTypesAndBytesDo) {
  const Read read{"a", {3, 5}};
  const Hash128 digest = digest_of(1, {read});
  EXPECT_NE(digest_of(2, {read}), digest);
  EXPECT_NE(digest_of(1, {{"a", {5, 3}}}), digest);
  EXPECT_NE(digest_of(1, {read}, 1, DType::f32), digest);
  EXPECT_NE(digest_of(1, {read, {"b", {1}}}), digest);
  EXPECT_NE(digest_of(1, {{"b", {7}}}), digest_of(1, {{"c", {7}}})) << "all of them are ones";
}

TEST(DigestedCheckpoint, PassesOnWhatTheSourceHas) {
  Memory memory;
  ThreadPool threads(1);
  const auto source = make_dummy_checkpoint(DType::f32, 1, memory);
  DigestedCheckpoint digested(*source, threads);
  EXPECT_EQ(digested.origin(), source->origin());
  EXPECT_FALSE(digested.contains("lm_head.weight"));
  EXPECT_EQ(digested.read("a", {2, 3}).shape(), (Extents{2, 3}));
}

TEST(DigestedCheckpoint, WhatIsReadAsStoredIsDigestedAndNotQuantised) {
  Memory memory;
  ThreadPool threads(1);
  const auto source = make_dummy_checkpoint(DType::f32, 1, memory);
  QuantizingCheckpoint quantizing(*source, LoadQuantization::q8, memory, threads);
  DigestedCheckpoint digested(quantizing, threads);
  const auto same = [&](const Tensor& tensor) {
    const auto* const stored = source->read("a", {2, 64}).elements<float>();
    return std::equal(stored, stored + 128, tensor.elements<float>());
  };
  EXPECT_TRUE(same(digested.read_as_stored("a", {2, 64})));
  EXPECT_EQ(digested.digest(), digest_of(1, {{"a", {2, 64}}}, 1, DType::f32));
  EXPECT_FALSE(same(digested.read("a", {2, 64})));
}

}  // namespace
}  // namespace paceline
