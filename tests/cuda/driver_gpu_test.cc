// The device behind NVIDIA's driver, on a fake of the driver.
#include "kernels/cuda/driver_gpu.h"

#include <gtest/gtest.h>

#include "base/device_lost.h"
#include "kernels/cuda/code/device_code.h"
#include "kernels/cuda/emulation/kernel_table.h"
#include "tests/cuda/every_order.h"
#include "tests/cuda/fake_driver.h"
#include "tests/expect_error.h"

namespace paceline::cuda::testing {
namespace {

// out[i] = x[i] + 1, through shared memory.
template <uint32_t words>
struct AddOne {
  static constexpr std::string_view kName = words > 1000 ? "test_add_one_large" : "test_add_one";
  static constexpr uint32_t kThreads = 64;
  struct Params {
    const uint32_t* x;
    uint32_t* out;
    uint32_t count;
  };
  struct Shared {
    uint32_t values[words];
  };
  PL_DEVICE static void run(const Params& params, Shared& shared) {
    const uint32_t i = block_index().x * kThreads + thread_index();
    shared.values[thread_index()] = i < params.count ? params.x[i] : 0;
    sync_threads();
    if (i < params.count) params.out[i] = shared.values[thread_index()] + 1;
  }
};
using SmallAddOne = AddOne<64>;
using LargeAddOne = AddOne<20000>;
const emulation::AddedKernel<SmallAddOne> kSmall;
const emulation::AddedKernel<LargeAddOne> kLarge;

const std::vector<std::byte> kModule(8);
const KernelBinary kBinary{.bytes = kModule, .architectures = "90a", .cuda = 13};

template <class Kernel>
void expect_sums(CudaDevice& gpu) {
  const std::vector<uint32_t> x = {5, 6, 7, 8, 9};
  auto* const out = static_cast<uint32_t*>(gpu.allocate(5 * 4));
  uint32_t* const from = to_device(gpu, x);
  launch<Kernel>(gpu, {.x = 2}, {.x = from, .out = out, .count = 5});
  EXPECT_EQ(from_device(gpu, out, 5), (std::vector<uint32_t>{6, 7, 8, 9, 10}));
  gpu.copy_within_device(out, from, 8);
  gpu.clear(out + 4, 4);
  EXPECT_EQ(from_device(gpu, out, 5), (std::vector<uint32_t>{5, 6, 8, 9, 0}));
  gpu.release(from, 5 * 4);
  gpu.release(out, 5 * 4);
}

TEST(DriverGpu, LaunchesKernelsByName) {
  FakeDriver driver;
  driver.add_kernel<SmallAddOne>();
  driver.add_kernel<LargeAddOne>();
  {
    DriverGpu gpu(driver.api(), 0, kBinary);
    expect_sums<SmallAddOne>(gpu);
    expect_sums<SmallAddOne>(gpu);
    EXPECT_EQ(driver.count_of("get_function"), 1);
    EXPECT_EQ(driver.count_of("set_attribute"), 0);
    expect_sums<LargeAddOne>(gpu);  // more than 48 KB must be asked for
    EXPECT_EQ(driver.count_of("set_attribute"), 1);
    EXPECT_EQ(driver.count_of("launch"), 3);
    const CudaDeviceInfo info = gpu.info();
    EXPECT_EQ(info.name, "Fake GPU");
    EXPECT_EQ(info.capability, 90);
    EXPECT_EQ(info.multiprocessors, 132);
    EXPECT_EQ(info.shared_bytes, 101376u);
    EXPECT_EQ(info.driver, "13.2");
    EXPECT_EQ(info.total_bytes, size_t{1} << 20);
    EXPECT_EQ(info.free_bytes, info.total_bytes);
    EXPECT_EQ(driver.num_contexts + driver.num_streams + driver.num_modules, 3);
  }
  EXPECT_EQ(driver.num_contexts + driver.num_streams + driver.num_modules, 0);
}

TEST(DriverGpu, PinnedMemoryMayChangeWhenItsCopyReturns) {
  FakeDriver driver;
  DriverGpu gpu(driver.api(), 0, kBinary);
  void* const block = gpu.allocate(64);
  auto* const pinned = static_cast<std::byte*>(gpu.allocate_pinned(64));
  std::vector<std::byte> pageable(64);
  gpu.copy_to_device(block, pageable.data(), 64);
  EXPECT_EQ(driver.count_of("synchronize"), 0);
  gpu.copy_to_device(block, pinned + 60, 4);
  EXPECT_EQ(driver.count_of("synchronize"), 1);
  gpu.release_pinned(pinned, 64);
  gpu.release(block, 64);
}

TEST(DriverGpu, SaysWhyItCannotBeOpened) {
  FakeDriver driver;
  const auto open = [&] { const DriverGpu gpu(driver.api(), 0, kBinary); };
  expect_error(ErrorCode::unsupported, {"there is no GPU 1: the driver has 1"},
               [&] { const DriverGpu gpu(driver.api(), 1, kBinary); });
  expect_error(ErrorCode::unsupported, {"Fake GPU: this build has no kernels for GPUs"},
               [&] { const DriverGpu gpu(driver.api(), 0, {}); });
  driver.fail_next("count", kDriverNoDevice);
  expect_error(ErrorCode::unsupported, {"there is no GPU 0: the driver has 0"}, open);
  driver.fail_next("load_module", kDriverNoKernelImage);
  expect_error(ErrorCode::unsupported, {"Fake GPU (compute capability 9.0)", "kernels for"}, open);
  const KernelBinary newer{.bytes = kModule, .architectures = "90a", .cuda = 14};
  driver.fail_next("load_module", kDriverNoKernelImage);
  expect_error(ErrorCode::unsupported,
               {"Fake GPU: its driver is for CUDA 13.2, the kernels of this build need one for "
                "CUDA 14 or newer: update the driver"},
               [&] { const DriverGpu gpu(driver.api(), 0, newer); });
  driver.fail_next("create_stream", 719);
  expect_error(ErrorCode::internal, {"can't make a stream: CUDA_ERROR_LAUNCH_FAILED"}, open);
  driver.fail_next("load_module", 4242);
  expect_error(ErrorCode::internal, {"can't load the kernels: error 4242"}, open);
  EXPECT_EQ(driver.num_contexts + driver.num_streams + driver.num_modules, 0);
}

TEST(DriverGpu, ErrorsHaveTheDriversWords) {
  FakeDriver driver;
  driver.add_kernel<SmallAddOne>();
  DriverGpu gpu(driver.api(), 0, kBinary);
  expect_error(ErrorCode::exhausted,
               {"Fake GPU has no memory for 2097152 bytes", "1048576 of 1048576 are free"},
               [&] { gpu.allocate(size_t{2} << 20); });
  expect_error(ErrorCode::internal, {"find the kernel test_add_one_large"},
               [&] { launch<LargeAddOne>(gpu, {}, {}); });
  driver.fail_next("launch", 719);
  expect_error(ErrorCode::internal,
               {"Fake GPU: can't launch the kernel test_add_one: CUDA_ERROR_LAUNCH_FAILED "
                "(unspecified launch failure)"},
               [&] { launch<SmallAddOne>(gpu, {}, {}); });
  driver.fail_next("synchronize", 719);
  expect_error(ErrorCode::internal, {"finish the work"}, [&] { gpu.synchronize(); });
}

TEST(DriverGpu, ErrorsThatAllLaterCallsHaveLoseTheDevice) {
  FakeDriver driver;
  driver.add_kernel<SmallAddOne>();
  DriverGpu gpu(driver.api(), 0, kBinary);
  for (const DriverResult result : {214, 700, 702, 716, 719, 911, 999}) {
    driver.fail_next("synchronize", result);
    EXPECT_THROW(gpu.synchronize(), DeviceLost) << result;
  }
  for (const DriverResult result : {1, 201, 500, 701, 900}) {
    driver.fail_next("launch", result);
    try {
      launch<SmallAddOne>(gpu, {}, {});
      ADD_FAILURE() << result;
    } catch (const DeviceLost&) {
      ADD_FAILURE() << result;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::internal);
    }
  }
}

// On a machine without a driver, or without a GPU; with one it opens.
TEST(OpenCudaDevice, OpensOrSaysWhyNot) {
  const int count = num_cuda_devices();
  expect_error(ErrorCode::unsupported, {"GPU"}, [&] { open_cuda_device(count); });
}

}  // namespace
}  // namespace paceline::cuda::testing
