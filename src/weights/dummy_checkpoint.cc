// The Checkpoint of dummy weights: read() generates any tensor.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/checked.h"
#include "base/error.h"
#include "weights/checkpoint.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

constexpr float kStandardDeviation = 0.02f;

// FNV-1a, 64 bits (Fowler, Noll, Vo; RFC 9923).
uint64_t hash_name(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  }
  return hash;
}

// The finaliser of SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number
// Generators", 2014) at position `index` of the sequence that begins at `key`: a pure function of
// both.
uint64_t split_mix(uint64_t key, uint64_t index) {
  uint64_t z = key + (index + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// The sum of four uniform bytes (Irwin-Hall), centred and scaled, is nearly normal: 1,021 different
// values, none beyond 3.46 standard deviations. A table holds them rounded to T.
constexpr size_t kNumSums = 4 * 255 + 1;
constexpr size_t kMiddleSum = kNumSums / 2;
constexpr float kSumDeviation = 147.80054f;  // sqrt(4 * (2^16 - 1) / 12)

// The sums of the lower and of the upper four bytes.
std::array<size_t, 2> byte_sums(uint64_t bits) {
  constexpr uint64_t kEvenBytes = 0x00FF00FF00FF00FF;
  const uint64_t pairs = (bits & kEvenBytes) + ((bits >> 8) & kEvenBytes);
  const uint64_t fours = pairs + (pairs >> 16);
  return {fours & 0xFFFF, (fours >> 32) & 0xFFFF};
}

template <class T>
void fill_normal(T* elements, uint64_t count, uint64_t key) {
  std::array<T, kNumSums> values;
  for (size_t sum = 0; sum < kNumSums; ++sum) {
    const auto centred = static_cast<float>(sum) - static_cast<float>(kMiddleSum);
    values[sum] = from_float<T>(centred * (kStandardDeviation / kSumDeviation));
  }
  uint64_t i = 0;
  for (; i + 2 <= count; i += 2) {
    const auto sums = byte_sums(split_mix(key, i / 2));
    elements[i] = values[sums[0]];
    elements[i + 1] = values[sums[1]];
  }
  if (i < count) elements[i] = values[byte_sums(split_mix(key, i / 2))[0]];
}

void fill(const Tensor& tensor, uint64_t key) {
  with_float_dtype(tensor.dtype(), [&]<class T>() {
    T* const elements = tensor.elements<T>();
    const auto count = static_cast<uint64_t>(tensor.num_elements());
    if (tensor.rank() < 2) {
      std::fill_n(elements, count, from_float<T>(1.0f));
    } else {
      fill_normal(elements, count, key);
    }
  });
}

// The config decides whether a model has these tensors.
bool only_on_request(std::string_view name) {
  return name.ends_with("lm_head.weight") || name.ends_with("bias");
}

void check_size(std::string_view name, const Extents& shape, DType dtype) {
  uint64_t bytes = dtype_bytes(dtype);
  for (const int64_t extent : shape) {
    const auto next = extent < 0 ? std::nullopt : checked_mul(bytes, static_cast<uint64_t>(extent));
    if (!next || *next > uint64_t{INT64_MAX}) {
      throw Error(ErrorCode::invalid,
                  fmt::format("dummy weights: tensor {}: no memory holds shape {}",
                              quoted_name(name), to_string(shape)));
    }
    bytes = *next;
  }
}

class DummyCheckpoint : public Checkpoint {
 public:
  DummyCheckpoint(DType dtype, uint64_t seed, Memory& memory)
      : dtype_(dtype), seed_(seed), memory_(memory) {}

  std::string origin() const override { return "dummy weights"; }
  std::span<const MappedFile> files() const override { return {}; }
  const std::vector<CheckpointEntry>& entries() const override { return no_entries_; }
  bool contains(std::string_view name) const override { return !only_on_request(name); }
  std::optional<Extents> shape_of(std::string_view) const override { return std::nullopt; }
  Tensor read_tensor(std::string_view name, const Extents& shape, ReadAs as) override;
  std::shared_ptr<const GroupedRows> read_grouped(std::string_view /*name*/,
                                                  const Extents& /*shape*/) override {
    return nullptr;
  }
  void release(std::string_view name) override {
    if (const auto at = made_.find(name); at != made_.end()) made_.erase(at);
  }

 private:
  DType dtype_;
  uint64_t seed_;
  Memory& memory_;
  std::vector<CheckpointEntry> no_entries_;
  std::map<std::string, OwnedTensor, std::less<>> made_;  // until released
};

Tensor DummyCheckpoint::read_tensor(std::string_view name, const Extents& shape, ReadAs /*as*/) {
  if (const auto at = made_.find(name); at != made_.end()) {
    const Tensor& tensor = at->second.view;
    if (tensor.shape() == shape) return tensor;
    throw Error(
        ErrorCode::corrupt,
        fmt::format("dummy weights: tensor {} was made with shape {} and is now read with {}",
                    quoted_name(name), to_string(tensor.shape()), to_string(shape)));
  }
  check_size(name, shape, dtype_);
  OwnedTensor made = allocate_tensor(memory_, dtype_, shape);
  fill(made.view, split_mix(hash_name(name), seed_));
  return made_.emplace(name, std::move(made)).first->second.view;
}

}  // namespace

std::unique_ptr<Checkpoint> make_dummy_checkpoint(DType dtype, uint64_t seed, Memory& memory) {
  if (!is_float(dtype)) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("dummy weights: dtype {} can't be made (float32, float16 and bfloat16 can)",
                    dtype_name(dtype)));
  }
  return std::make_unique<DummyCheckpoint>(dtype, seed, memory);
}

}  // namespace paceline
