#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

namespace paceline {
namespace {

TEST(Extents, HoldSizes) {
  const Extents shape = {2, 3, 4};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape[2], 4);
  EXPECT_EQ(shape, (Extents{2, 3, 4}));
  EXPECT_NE(shape, (Extents{2, 3}));
  EXPECT_NE(shape, (Extents{2, 3, 5}));
  EXPECT_NE(Extents{}, Extents{0});
  EXPECT_EQ(to_string(shape), "[2, 3, 4]");
  EXPECT_EQ(to_string(Extents{}), "[]");
  EXPECT_EQ(to_string(Extents{-7}), "[-7]");
}

TEST(Tensor, DefaultIsAScalarOfNothing) {
  const Tensor tensor;
  EXPECT_EQ(tensor.rank(), 0);
  EXPECT_EQ(tensor.raw(), nullptr);
}

TEST(Tensor, DescribesItsElements) {
  std::vector<float> storage(24);
  const Tensor tensor(storage.data(), DType::f32, {2, 3, 4});
  EXPECT_EQ(tensor.strides(), (Extents{12, 4, 1}));
  EXPECT_EQ(tensor.size(-1), 4);
  EXPECT_EQ(tensor.stride(-2), 4);
  EXPECT_EQ(tensor.num_elements(), 24);
  EXPECT_EQ(tensor.size_bytes(), 96u);
  EXPECT_EQ(tensor.row<float>(1), storage.data() + 12);
  EXPECT_EQ(tensor.device(), Device::cpu);
  EXPECT_EQ(Tensor(storage.data(), DType::bf16, {5}).size_bytes(), 10u);
  EXPECT_EQ(Tensor(storage.data(), DType::f32, {}).num_elements(), 1);
  EXPECT_EQ(Tensor(storage.data(), DType::f32, {3}, Device::cuda).reshape({3, 1}).device(),
            Device::cuda);
}

TEST(Tensor, EmptyTensorsNeedNoMemory) {
  Memory memory;
  const Tensor empty(nullptr, DType::f32, {3, 0, 5});
  EXPECT_TRUE(empty.empty());
  EXPECT_TRUE(empty.is_contiguous());
  EXPECT_EQ(empty.size_bytes(), 0u);
  EXPECT_EQ(empty.reshape({0}).shape(), Extents{0});
  EXPECT_EQ(empty.slice(0, 1, 3).shape(), (Extents{2, 0, 5}));
  EXPECT_EQ(empty.slice(2, 5, 5).raw(), nullptr);
  EXPECT_EQ(empty.transpose(0, 1).shape(), (Extents{0, 3, 5}));
  EXPECT_EQ(empty.broadcast_to({2, 3, 0, 5}).shape(), (Extents{2, 3, 0, 5}));
  empty.for_each_offset([](int64_t) { FAIL(); });
  copy_elements(empty, empty);
  Buffer storage;
  EXPECT_EQ(contiguous(empty.transpose(0, 2), memory, storage).shape(), (Extents{5, 0, 3}));
  const OwnedTensor owned = allocate_tensor(memory, DType::f16, {0, 7});
  EXPECT_TRUE(owned.view.empty());
  // An empty slice at the end keeps a valid pointer.
  std::vector<float> one(4);
  EXPECT_EQ(Tensor(one.data(), DType::f32, {4}).slice(0, 4, 4).raw(), one.data());
}

TEST(Tensor, AllocatedTensorsAreZeroedAndOwned) {
  Memory memory;
  {
    OwnedTensor owned = allocate_tensor(memory, DType::f32, {16, 64});
    EXPECT_EQ(owned.view.raw(), owned.buffer.get());
    EXPECT_EQ(owned.buffer.size_bytes(), 4096u);
    EXPECT_EQ(memory.stats().active_bytes, 4096u);
    owned.view.for_each_offset(
        [&](int64_t i) { ASSERT_EQ(owned.view.elements<float>()[i], 0.0f); });
    owned.view.elements<float>()[5] = 1.0f;
    const OwnedTensor moved = std::move(owned);
    EXPECT_EQ(moved.view.elements<float>()[5], 1.0f);
  }
  EXPECT_EQ(memory.stats().active_bytes, 0u);
  const OwnedTensor again = allocate_tensor(memory, DType::f32, {16, 64});
  EXPECT_EQ(again.view.elements<float>()[5], 0.0f);
}

TEST(Tensor, ContiguousReplacesWhatTheStorageHeld) {
  Memory memory;
  std::vector<float> storage = {0, 1, 2, 3, 4, 5};
  const Tensor view = Tensor(storage.data(), DType::f32, {2, 3}).transpose(0, 1);
  Buffer held(memory, 10'000);
  const Tensor flat = contiguous(view, memory, held);
  EXPECT_EQ(flat.raw(), held.get());
  EXPECT_EQ(held.size_bytes(), 24u);
  const auto* const elements = flat.elements<float>();
  EXPECT_EQ(std::vector<float>(elements, elements + 6), (std::vector<float>{0, 3, 1, 4, 2, 5}));
}

TEST(Tensor, NumpyBroadcastRules) {
  std::vector<float> storage(12);
  const Tensor tensor(storage.data(), DType::f32, {3, 1, 4});
  EXPECT_EQ(tensor.broadcast_to({3, 5, 4}).strides(), (Extents{4, 0, 1}));
  EXPECT_EQ(tensor.broadcast_to({2, 3, 5, 4}).strides(), (Extents{0, 4, 0, 1}));
  EXPECT_EQ(tensor.broadcast_to({3, 0, 4}).num_elements(), 0);
  EXPECT_EQ(Tensor(storage.data(), DType::f32, {}).broadcast_to({2, 2}).strides(), (Extents{0, 0}));
}

template <class T>
T from_float(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else if constexpr (std::is_same_v<T, Float16>) {
    return to_float16(value);
  } else {
    return to_bfloat16(value);
  }
}

// Values that neither 16-bit type holds exactly, and the special ones.
std::vector<float> awkward_values() {
  std::vector<float> values = {0.0f,
                               -0.0f,
                               1.0f,
                               65520.0f,
                               -1e-8f,
                               1e-30f,
                               3.4e38f,
                               2.0f / 3,
                               1e5f,
                               -0x1.8p-24f,
                               0x1.01p0f,
                               std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::quiet_NaN()};
  while (values.size() < 60) values.push_back(std::sin(static_cast<float>(values.size())) * 300.0f);
  return values;
}

// Copies [6, 10] -> [6, 10] from and to plain and transposed storage, and compares every element
// with the conversion of its own.
template <class From, class To>
void expect_copies_convert() {
  using Bits = std::conditional_t<sizeof(To) == 4, uint32_t, uint16_t>;
  const std::vector<float> values = awkward_values();
  for (const bool from_transposed : {false, true}) {
    for (const bool to_transposed : {false, true}) {
      std::vector<From> source(60);
      std::vector<To> target(60);
      for (size_t i = 0; i < 60; ++i) source[i] = from_float<From>(values[i]);
      const auto view = [](auto& storage, bool transposed) {
        const DType dtype =
            dtype_of<typename std::remove_reference_t<decltype(storage)>::value_type>();
        return transposed ? Tensor(storage.data(), dtype, {10, 6}).transpose(0, 1)
                          : Tensor(storage.data(), dtype, {6, 10});
      };
      const Tensor from = view(source, from_transposed), to = view(target, to_transposed);
      copy_elements(from, to);
      for (int64_t row = 0; row < 6; ++row) {
        for (int64_t column = 0; column < 10; ++column) {
          const auto at = [&](const Tensor& tensor) {
            return row * tensor.stride(0) + column * tensor.stride(1);
          };
          const From original = from.elements<From>()[at(from)];
          const To copied = to.elements<To>()[at(to)];
          const To expected = from_float<To>(to_float(original));
          ASSERT_EQ(std::bit_cast<Bits>(copied), std::bit_cast<Bits>(expected))
              << row << ", " << column;
        }
      }
    }
  }
}

TEST(CopyElements, ConvertsBetweenAllFloatTypes) {
  for (DType from : {DType::f32, DType::f16, DType::bf16}) {
    for (DType to : {DType::f32, DType::f16, DType::bf16}) {
      with_float_dtype(from, [&]<class From>() {
        with_float_dtype(to, [&]<class To>() { expect_copies_convert<From, To>(); });
      });
    }
  }
}

// A copy between equal types keeps bits, even of signalling NaNs.
TEST(CopyElements, KeepsEveryBitBetweenEqualTypes) {
  std::vector<uint16_t> source(65536), target(65536, 0xDEAD);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint16_t>(i);
  for (DType dtype : {DType::f16, DType::bf16}) {
    const Tensor from(source.data(), dtype, {256, 256}), to(target.data(), dtype, {256, 256});
    copy_elements(from.transpose(0, 1), to.transpose(0, 1));
    EXPECT_EQ(source, target);
    std::fill(target.begin(), target.end(), uint16_t{0xDEAD});
    copy_elements(from, to);
    EXPECT_EQ(source, target);
  }
}

TEST(CopyElements, CopiesScalarsIntegersAndBroadcasts) {
  int32_t source = -5, target[6] = {};
  copy_elements(Tensor(&source, DType::i32, {}), Tensor(target, DType::i32, {}));
  EXPECT_EQ(target[0], -5);
  copy_elements(Tensor(&source, DType::i32, {1}).broadcast_to({2, 3}),
                Tensor(target, DType::i32, {2, 3}));
  EXPECT_EQ(std::count(target, target + 6, -5), 6);
}

TEST(TensorDeathTest, MisuseAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::vector<float> storage(24);
  const Tensor tensor(storage.data(), DType::f32, {2, 3, 4});
  const Tensor integers(storage.data(), DType::i32, {2, 3, 4});
  EXPECT_DEATH(tensor.elements<int32_t>(), "another dtype");
  EXPECT_DEATH(tensor.reshape({5, 5}), "reshape of \\[2, 3, 4\\] to \\[5, 5\\]");
  EXPECT_DEATH(tensor.transpose(0, 1).reshape({24}), "contiguous");
  EXPECT_DEATH(tensor.transpose(0, 3), "dimension 3");
  EXPECT_DEATH(tensor.transpose(-4, 0), "dimension -4");
  EXPECT_DEATH(tensor.slice(0, 1, 3), "slice \\[1, 3\\)");
  EXPECT_DEATH(tensor.slice(0, -1, 1), "slice");
  EXPECT_DEATH(tensor.slice(0, 2, 1), "slice");
  EXPECT_DEATH(tensor.broadcast_to({2, 3, 5}), "broadcast of");
  EXPECT_DEATH(tensor.broadcast_to({3, 4}), "broadcast of");
  EXPECT_DEATH(copy_elements(tensor, tensor.reshape({24})), "copy of");
  EXPECT_DEATH(copy_elements(tensor, integers), "float32 to int32");
  EXPECT_DEATH(Tensor(storage.data(), DType::f32, {2, -1}), "negative");
  EXPECT_DEATH(Tensor(storage.data(), DType::f32, {int64_t{1} << 40, int64_t{1} << 40}),
               "too large");
  EXPECT_DEATH(Tensor(storage.data(), DType::f32, {2, 3}, {1}, Device::cpu), "different rank");
  EXPECT_DEATH((Extents{1, 1, 1, 1, 1, 1, 1}), "more dimensions");
  EXPECT_DEATH(copy_elements(Tensor(storage.data(), DType::f32, {1}, Device::cuda),
                             Tensor(storage.data(), DType::f32, {1})),
               "host memory");
}

}  // namespace
}  // namespace paceline
