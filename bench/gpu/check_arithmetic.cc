#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "bench/gpu/checks.h"
#include "kernels/cuda/code/mma_probe.h"
#include "kernels/cuda/launch.h"

namespace paceline {
namespace {

using cuda::CudaDevice;

constexpr uint64_t kTileSeed = 7;

// A block of a device's memory that holds `elements`.
template <class T>
class DeviceCopy {
 public:
  DeviceCopy(CudaDevice& device, const std::vector<T>& elements)
      : device_(device),
        bytes_(elements.size() * sizeof(T)),
        block_(static_cast<T*>(device.allocate(bytes_))) {
    device.copy_to_device(block_, elements.data(), bytes_);
  }
  ~DeviceCopy() { device_.release(block_, bytes_); }
  DeviceCopy(const DeviceCopy&) = delete;
  DeviceCopy& operator=(const DeviceCopy&) = delete;

  T* get() const { return block_; }
  size_t size_bytes() const { return bytes_; }
  std::vector<T> read() const {
    std::vector<T> elements(bytes_ / sizeof(T));
    device_.copy_from_device(elements.data(), block_, bytes_);
    return elements;
  }

 private:
  CudaDevice& device_;
  size_t bytes_;
  T* block_;
};

// Operands of tiles, as the lanes hold them.
struct Tiles {
  std::vector<uint32_t> a, b;
  std::vector<float> d;
};

// Bits of numbers whose exponents lie within `spread` of one; every 200th is zero, subnormal,
// infinite or NaN when there are `specials`.
class NumberBits {
 public:
  NumberBits(uint64_t seed, int spread, bool specials)
      : seed_(seed), spread_(spread), specials_(specials) {}

  uint16_t bfloat16() { return static_cast<uint16_t>(float32() >> 16); }
  uint32_t float32() {
    constexpr uint32_t kSpecials[] = {0,          0x80000000, 0x00010000,
                                      0x7F800000, 0xFF800000, 0x7FC00000};
    if (specials_ && below(200) == 0) return kSpecials[below(6)];
    const auto exponent = static_cast<uint32_t>(127 - spread_ + below(2 * spread_ + 1));
    return (static_cast<uint32_t>(below(2)) << 31) | (exponent << 23) |
           static_cast<uint32_t>(below(1 << 23));
  }

 private:
  int below(int count) {
    return static_cast<int>(uniform_draw(seed_, counter_++) * static_cast<double>(count));
  }

  uint64_t seed_;
  uint64_t counter_ = 0;
  int spread_;
  bool specials_;
};

Tiles random_tiles(size_t count, int spread, bool specials) {
  NumberBits bits(kTileSeed + static_cast<uint64_t>(spread), spread, specials);
  Tiles tiles;
  const auto pair = [&] {
    const uint32_t low = bits.bfloat16();
    return low | (uint32_t{bits.bfloat16()} << 16);
  };
  const size_t lanes = count * cuda::kWarpLanes;
  for (size_t i = 0; i < lanes * 4; ++i) tiles.a.push_back(pair());
  for (size_t i = 0; i < lanes * 2; ++i) tiles.b.push_back(pair());
  for (size_t i = 0; i < lanes * 4; ++i) tiles.d.push_back(std::bit_cast<float>(bits.float32()));
  return tiles;
}

std::vector<float> multiply(CudaDevice& device, const Tiles& tiles) {
  const DeviceCopy a(device, tiles.a), b(device, tiles.b);
  const DeviceCopy d(device, tiles.d);
  const auto blocks = static_cast<uint32_t>(tiles.b.size() / 2 / cuda::kWarpLanes);
  cuda::launch<cuda::MmaProbe>(device, {.x = blocks}, {a.get(), b.get(), d.get()});
  return d.read();
}

// NaNs of any payload are equal.
int64_t count_differences(const std::vector<float>& x, const std::vector<float>& y) {
  int64_t count = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const bool are_nan = x[i] != x[i] && y[i] != y[i];
    if (!are_nan && std::bit_cast<uint32_t>(x[i]) != std::bit_cast<uint32_t>(y[i])) ++count;
  }
  return count;
}

void check_copies(CudaDevice& device, bool is_small, CheckReport& report) {
  std::vector<uint32_t> words((is_small ? size_t{1} << 16 : size_t{1} << 24) + 3);
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint32_t>(i * 2654435761u);
  const DeviceCopy from(device, words);
  const DeviceCopy to(device, std::vector<uint32_t>(words.size()));
  device.copy_within_device(to.get(), from.get(), from.size_bytes());
  report.check("arithmetic", "copies", to.read() == words,
               [&](JsonWriter& json) { json.member("bytes", from.size_bytes()); });
  device.clear(to.get(), to.size_bytes());
  report.check("arithmetic", "clear", to.read() == std::vector<uint32_t>(words.size()));
}

}  // namespace

void check_arithmetic(CudaDevice& device, const CheckOptions& options, CheckReport& report) {
  check_copies(device, options.is_small, report);
  const auto emulation = cuda::make_emulated_device();
  const size_t count = options.is_small ? 200 : 5000;
  for (const int spread : {1, 8, 30, 100}) {
    for (const bool specials : {false, true}) {
      const Tiles tiles = random_tiles(count, spread, specials);
      const int64_t differences =
          count_differences(multiply(device, tiles), multiply(*emulation, tiles));
      report.check(
          "arithmetic",
          "mma, exponents within " + std::to_string(spread) + (specials ? ", special numbers" : ""),
          differences == 0, [&](JsonWriter& json) {
            json.member("elements", tiles.d.size()).member("differences", differences);
          });
    }
  }
}

}  // namespace paceline
