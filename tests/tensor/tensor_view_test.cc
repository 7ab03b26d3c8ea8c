// Compares random chains of views with a model that lists the storage index of every element.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tensor/tensor.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

using Sizes = std::vector<int64_t>;

int64_t product(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

Extents extents(const Sizes& sizes) { return Extents(std::span<const int64_t>(sizes)); }

// The position of every dimension at the `flat`-th element in row-major order.
Sizes positions(const Sizes& shape, int64_t flat) {
  Sizes result(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    result[i] = flat % shape[i];
    flat /= shape[i];
  }
  return result;
}

int64_t flat_index(const Sizes& shape, const Sizes& position) {
  int64_t flat = 0;
  for (size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + position[i];
  return flat;
}

// A view as the list of the storage indices of its elements in row-major order.
struct NaiveView {
  Sizes shape;
  std::vector<int64_t> indices;

  // The view of `new_shape` whose element at a position is this one's at source(position).
  template <class Source>
  NaiveView rearranged(const Sizes& new_shape, Source&& source) const {
    NaiveView result{new_shape, {}};
    for (int64_t i = 0; i < product(new_shape); ++i) {
      const Sizes from = source(positions(new_shape, i));
      result.indices.push_back(indices[static_cast<size_t>(flat_index(shape, from))]);
    }
    return result;
  }

  bool is_contiguous() const {
    for (size_t i = 1; i < indices.size(); ++i) {
      if (indices[i] != indices[i - 1] + 1) return false;
    }
    return true;
  }
};

class Views {
 public:
  explicit Views(unsigned seed) : random_(seed), storage_(2000) {
    std::iota(storage_.begin(), storage_.end(), 0);
    const Sizes shape = random_shape(900);
    const auto offset = static_cast<int64_t>(pick(1000));
    view_ = Tensor(storage_.data() + offset, DType::i32, extents(shape));
    naive_.shape = shape;
    for (int64_t i = 0; i < product(shape); ++i) naive_.indices.push_back(offset + i);
  }

  const Tensor& view() const { return view_; }
  const NaiveView& naive() const { return naive_; }

  // Applies one random operation to both.
  void step() {
    switch (pick(6)) {
      case 0:
        return reshape();
      case 1:
      case 2:
        return transpose();
      case 3:
        return slice();
      case 4:
        return broadcast();
      default:
        return as_strided();
    }
  }

  void expect_same() const {
    ASSERT_EQ(view_.shape(), extents(naive_.shape));
    ASSERT_EQ(view_.num_elements(), static_cast<int64_t>(naive_.indices.size()));
    ASSERT_EQ(view_.empty(), naive_.indices.empty());
    ASSERT_EQ(view_.is_contiguous(), naive_.is_contiguous());
    std::vector<int64_t> visited;
    view_.for_each_offset([&](int64_t offset) {
      visited.push_back(view_.elements<int32_t>()[offset]);  // storage[i] is i
    });
    ASSERT_EQ(visited, naive_.indices);
  }

 private:
  size_t pick(size_t count) { return random_() % count; }
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(pick(static_cast<size_t>(high - low + 1)));
  }
  size_t rank() const { return naive_.shape.size(); }

  // Up to `limit` elements; a zero now and then.
  Sizes random_shape(int64_t limit) {
    Sizes shape(pick(kMaxRank + 1));
    for (int64_t& size : shape) size = pick(40) == 0 ? 0 : between(1, 7);
    while (product(shape) > limit) shape[pick(shape.size())] = 1;
    return shape;
  }

  void reshape() {
    if (!view_.is_contiguous()) return;
    Sizes shape = {product(naive_.shape)};
    for (size_t split = pick(4); split > 0; --split) {
      const size_t i = pick(shape.size());
      int64_t factor = between(1, 6);
      while (shape[i] % factor != 0) --factor;
      shape[i] /= factor;
      shape.insert(shape.begin() + static_cast<long>(pick(shape.size() + 1)), factor);
    }
    if (product(naive_.shape) == 1 && pick(2) == 0) shape.clear();
    view_ = view_.reshape(extents(shape));
    naive_.shape = shape;
  }

  void transpose() {
    if (rank() == 0) return;
    const size_t first = pick(rank()), second = pick(rank());
    Sizes shape = naive_.shape;
    std::swap(shape[first], shape[second]);
    naive_ = naive_.rearranged(shape, [&](Sizes position) {
      std::swap(position[first], position[second]);
      return position;
    });
    const int from_end = static_cast<int>(second) - (pick(2) == 0 ? static_cast<int>(rank()) : 0);
    view_ = view_.transpose(static_cast<int>(first), from_end);
  }

  void slice() {
    if (rank() == 0) return;
    const size_t dimension = pick(rank());
    const int64_t size = naive_.shape[dimension];
    const int64_t begin = between(0, size);
    const int64_t end = pick(20) == 0 ? begin : between(begin, size);
    Sizes shape = naive_.shape;
    shape[dimension] = end - begin;
    naive_ = naive_.rearranged(shape, [&](Sizes position) {
      position[dimension] += begin;
      return position;
    });
    view_ = view_.slice(static_cast<int>(dimension), begin, end);
  }

  void broadcast() {
    Sizes shape = naive_.shape;
    for (int64_t& size : shape) {
      if (size == 1 && product(shape) < 500 && pick(2) == 0) size = between(0, 4);
    }
    while (shape.size() < kMaxRank && pick(3) == 0 && product(shape) < 500) {
      shape.insert(shape.begin(), between(1, 3));
    }
    const size_t added = shape.size() - rank();
    naive_ = naive_.rearranged(shape, [&, old = naive_.shape](const Sizes& position) {
      Sizes from(old.size());
      for (size_t i = 0; i < old.size(); ++i) from[i] = old[i] == 1 ? 0 : position[i + added];
      return from;
    });
    view_ = view_.broadcast_to(extents(shape));
  }

  // Any strides inside the storage, also negative ones.
  void as_strided() {
    const int64_t start = view_.elements<int32_t>() - storage_.data();
    const Sizes shape = random_shape(400);
    Sizes strides(shape.size());
    int64_t lowest = 0, highest = 0;
    for (size_t i = 0; i < shape.size(); ++i) {
      strides[i] = between(-12, 12);
      const int64_t reach = strides[i] * std::max<int64_t>(shape[i] - 1, 0);
      (reach < 0 ? lowest : highest) += reach;
    }
    const auto last = static_cast<int64_t>(storage_.size()) - 1;
    const int64_t offset = between(-lowest, last - highest) - start;
    NaiveView result{shape, {}};
    for (int64_t i = 0; i < product(shape); ++i) {
      const Sizes position = positions(shape, i);
      result.indices.push_back(
          std::inner_product(position.begin(), position.end(), strides.begin(), start + offset));
    }
    naive_ = result;
    view_ = view_.as_strided(extents(shape), extents(strides), offset);
  }

  std::mt19937 random_;
  std::vector<int32_t> storage_;
  Tensor view_;
  NaiveView naive_;
};

TEST(TensorViews, RandomChainsAgreeWithTheModel) {
  unsigned num_strided = 0, num_empty = 0;
  const auto num_seeds = static_cast<unsigned>(scaled(3000, 300'000));
  for (unsigned seed = 0; seed < num_seeds; ++seed) {
    Views views(seed);
    views.expect_same();
    for (int i = 0; i < 8; ++i) {
      views.step();
      views.expect_same();
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << " step " << i;
      num_strided += views.view().is_contiguous() ? 0 : 1;
      num_empty += views.view().empty() ? 1 : 0;
    }
  }
  EXPECT_GT(num_strided, num_seeds * 5 / 3);
  EXPECT_GT(num_empty, num_seeds / 6);
}

TEST(TensorViews, ContiguousGivesTheElementsInOrder) {
  Memory memory;
  unsigned num_copied = 0;
  const auto num_seeds = static_cast<unsigned>(scaled(1000, 100'000));
  for (unsigned seed = 0; seed < num_seeds; ++seed) {
    Views views(seed);
    for (int i = 0; i < 5; ++i) views.step();
    Buffer storage;
    const Tensor flat = contiguous(views.view(), memory, storage);
    ASSERT_TRUE(flat.is_contiguous());
    ASSERT_EQ(flat.shape(), views.view().shape());
    ASSERT_EQ(storage.get() == nullptr, views.view().is_contiguous());
    ASSERT_EQ(flat.raw() == views.view().raw(), views.view().is_contiguous());
    if (flat.empty()) continue;
    const auto* const elements = flat.elements<int32_t>();
    ASSERT_EQ(std::vector<int64_t>(elements, elements + flat.num_elements()),
              views.naive().indices);
    num_copied += storage.get() != nullptr ? 1 : 0;
  }
  EXPECT_GT(num_copied, num_seeds / 5);
  EXPECT_EQ(memory.stats().active_bytes, 0u);
}

// Into a view whose elements are distinct: a transposed slice of a larger array.
TEST(TensorViews, CopyWritesExactlyTheElementsOfTheTarget) {
  std::mt19937 random(9);
  const auto num_seeds = static_cast<unsigned>(scaled(1000, 100'000));
  for (unsigned seed = 0; seed < num_seeds; ++seed) {
    Views views(seed);
    for (int i = 0; i < 4; ++i) views.step();
    const Tensor& from = views.view();
    if (from.rank() < 2) continue;
    const int first = static_cast<int>(random() % static_cast<unsigned>(from.rank()));
    const int second = static_cast<int>(random() % static_cast<unsigned>(from.rank()));
    Extents padded = from.shape();
    for (int i = 0; i < padded.rank(); ++i) padded[i] += 2;
    std::swap(padded[first], padded[second]);
    std::vector<int32_t> storage(
        static_cast<size_t>(Tensor(nullptr, DType::i32, padded).num_elements()), -1);
    Tensor to = Tensor(storage.data(), DType::i32, padded).transpose(first, second);
    for (int i = 0; i < to.rank(); ++i) to = to.slice(i, 1, 1 + from.size(i));
    copy_elements(from, to);
    std::vector<int64_t> written;
    to.for_each_offset([&](int64_t offset) { written.push_back(to.elements<int32_t>()[offset]); });
    ASSERT_EQ(written, views.naive().indices);
    const auto untouched = std::count(storage.begin(), storage.end(), -1);
    ASSERT_EQ(static_cast<int64_t>(storage.size()) - untouched, from.num_elements());
  }
}

}  // namespace
}  // namespace paceline
