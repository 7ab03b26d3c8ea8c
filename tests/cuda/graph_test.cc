// Graphs and events of a device: the emulation, and the device behind NVIDIA's driver on a fake of
// it.
#include <gtest/gtest.h>

#include <numeric>

#include "kernels/cuda/code/device_code.h"
#include "kernels/cuda/driver_gpu.h"
#include "kernels/cuda/emulation/kernel_table.h"
#include "tests/cuda/every_order.h"
#include "tests/cuda/fake_driver.h"
#include "tests/expect_error.h"

namespace paceline::cuda::testing {
namespace {

// values[i] = 2 values[i] + i of a block's threads, through shared memory.
struct DoubleAndCount {
  static constexpr std::string_view kName = "test_double_and_count";
  static constexpr uint32_t kThreads = 64;
  struct Params {
    uint32_t* values;
    uint32_t fails;  // lane 0 misses a barrier
  };
  struct Shared {
    uint32_t values[kThreads];
  };
  PL_DEVICE static void run(const Params& params, Shared& shared) {
    const uint32_t i = thread_index();
    shared.values[kThreads - 1 - i] = kThreads - 1 - i;
    if (params.fails == 0 || i > 0) sync_threads();
    params.values[i] = 2 * params.values[i] + shared.values[i];
  }
};
const emulation::AddedKernel<DoubleAndCount> kDoubleAndCount;

constexpr size_t kCount = DoubleAndCount::kThreads;
constexpr size_t kBytes = kCount * sizeof(uint32_t);

// 2^turns - 1 times each index.
std::vector<uint32_t> expected(uint32_t turns) {
  std::vector<uint32_t> values(kCount);
  std::iota(values.begin(), values.end(), 0u);
  for (uint32_t& value : values) value *= (1u << turns) - 1;
  return values;
}

struct TestDevice {
  virtual ~TestDevice() = default;
  virtual CudaDevice& get() = 0;
};
struct Emulated : TestDevice {
  CudaDevice& get() override { return *device; }
  std::unique_ptr<CudaDevice> device = make_emulated_device({.total_bytes = 1 << 20});
};
struct Driven : TestDevice {
  Driven() { driver.add_kernel<DoubleAndCount>(); }
  CudaDevice& get() override { return gpu; }
  FakeDriver driver;
  std::vector<std::byte> binary = std::vector<std::byte>(8);
  DriverGpu gpu{driver.api(), 0, {.bytes = binary}};
};

class Graphs : public ::testing::TestWithParam<std::string> {
 protected:
  CudaDevice& device() { return device_->get(); }
  uint32_t* allocate() { return static_cast<uint32_t*>(device().allocate(kBytes)); }

  std::unique_ptr<TestDevice> device_ = GetParam() == "emulated"
                                            ? std::unique_ptr<TestDevice>(new Emulated)
                                            : std::unique_ptr<TestDevice>(new Driven);
};

TEST_P(Graphs, AGraphIsItsCallsInTheirOrder) {
  uint32_t* const values = allocate();
  uint32_t* const copy = allocate();
  const std::vector<uint32_t> ones(kCount, 1);
  device().copy_to_device(values, ones.data(), kBytes);
  GraphCapture capture(device());
  device().clear(values, kBytes);
  for (int i = 0; i < 3; ++i) launch<DoubleAndCount>(device(), {}, {.values = values});
  device().copy_within_device(copy, values, kBytes);
  const auto graph = capture.finish();
  EXPECT_EQ(from_device(device(), values, kCount), ones) << "a capture runs nothing";
  for (int turn = 0; turn < 2; ++turn) {
    device().launch(*graph);
    EXPECT_EQ(from_device(device(), copy, kCount), expected(3));
    device().clear(copy, kBytes);
  }
  device().copy_to_device(values, ones.data(), kBytes);
  device().launch(*graph);
  launch<DoubleAndCount>(device(), {}, {.values = values});  // behind the graph
  EXPECT_EQ(from_device(device(), values, kCount), expected(4));
}

TEST_P(Graphs, WhatAKernelWroteToPinnedMemoryIsThereAfterItsEvent) {
  auto* const pinned = static_cast<uint32_t*>(device().allocate_pinned(kBytes));
  std::fill_n(pinned, kCount, 0u);
  GraphCapture capture(device());
  launch<DoubleAndCount>(device(), {}, {.values = pinned});
  const auto graph = capture.finish();
  const auto first = device().make_event(), second = device().make_event();
  device().launch(*graph);
  device().record(*first);
  device().launch(*graph);
  device().record(*second);
  EXPECT_EQ(pinned[5], 0u) << "the emulation runs a graph as late as it may";
  device().wait(*first);
  EXPECT_EQ(std::vector<uint32_t>(pinned, pinned + kCount), expected(1));
  device().wait(*second);
  device().wait(*first);
  EXPECT_EQ(std::vector<uint32_t>(pinned, pinned + kCount), expected(2));
  device().release_pinned(pinned, kBytes);
}

TEST_P(Graphs, AGraphMayBeGoneBeforeItHasRun) {
  uint32_t* const values = allocate();
  device().clear(values, kBytes);
  {
    GraphCapture capture(device());
    launch<DoubleAndCount>(device(), {}, {.values = values});
    device().launch(*capture.finish());
  }
  EXPECT_EQ(from_device(device(), values, kCount), expected(1));
}

TEST_P(Graphs, ACaptureRefusesWhatNeedsTheCpu) {
  uint32_t* const values = allocate();
  std::vector<uint32_t> host(kCount);
  const auto event = device().make_event();
  GraphCapture empty(device());
  const auto graph = empty.finish();
  const std::pair<const char*, std::function<void()>> calls[] = {
      {"allocate: a graph is being captured", [&] { device().allocate(8); }},
      {"allocate_pinned: ", [&] { device().allocate_pinned(8); }},
      {"copy_to_device: ", [&] { device().copy_to_device(values, host.data(), kBytes); }},
      {"copy_from_device: ", [&] { device().copy_from_device(host.data(), values, kBytes); }},
      {"synchronize: ", [&] { device().synchronize(); }},
      {"begin_capture: ", [&] { device().begin_capture(); }},
      {"launch of a graph: ", [&] { device().launch(*graph); }},
      {"make_event: ", [&] { device().make_event(); }},
      {"record: ", [&] { device().record(*event); }},
      {"wait: ", [&] { device().wait(*event); }}};
  for (const auto& [words, call] : calls) {
    SCOPED_TRACE(words);
    const GraphCapture capture(device());
    expect_error(ErrorCode::internal, {words}, call);
  }
  device().clear(values, kBytes);  // the captures are over
  EXPECT_EQ(from_device(device(), values, kCount), expected(0));
}

INSTANTIATE_TEST_SUITE_P(all, Graphs, ::testing::Values("emulated", "driven"),
                         [](const auto& name) { return name.param; });

TEST(EmulatedGraph, AReleaseSpoilsItsCapture) {
  const auto device = make_emulated_device();
  void* const block = device->allocate(64);
  GraphCapture capture(*device);
  device->release(block, 64);
  expect_error(ErrorCode::internal, {"release: a graph was being captured"},
               [&] { capture.finish(); });
  EXPECT_NE(GraphCapture(*device).finish(), nullptr);
}

TEST(EmulatedGraph, AKernelsErrorIsThrownWhereItIsWaitedFor) {
  const auto device = make_emulated_device();
  auto* const values = static_cast<uint32_t*>(device->allocate(kBytes));
  GraphCapture capture(*device);
  launch<DoubleAndCount>(*device, {}, {.values = values, .fails = 1});
  const auto graph = capture.finish();
  const auto event = device->make_event();
  device->launch(*graph);
  device->record(*event);
  device->launch(*graph);
  expect_error(ErrorCode::internal, {"test_double_and_count", "graph_test.cc"},
               [&] { device->wait(*event); });
  expect_error(ErrorCode::internal, {"test_double_and_count"}, [&] { device->synchronize(); });
}

TEST(EmulatedGraph, HasTheSameBytesInEveryOrderOfThreads) {
  const std::vector<std::byte> bytes = same_in_every_order([](CudaDevice& device) {
    auto* const values = static_cast<uint32_t*>(device.allocate(kBytes));
    device.clear(values, kBytes);
    GraphCapture capture(device);
    launch<DoubleAndCount>(device, {}, {.values = values});
    const auto graph = capture.finish();
    for (int i = 0; i < 3; ++i) device.launch(*graph);
    return bytes_from_device(device, values, kCount);
  });
  const std::vector<uint32_t> values = expected(3);
  EXPECT_EQ(std::memcmp(bytes.data(), values.data(), kBytes), 0);
}

TEST(DriverGraphs, AreDestroyedAndReportTheDriversWords) {
  FakeDriver driver;
  driver.add_kernel<DoubleAndCount>();
  const std::vector<std::byte> binary(8);
  {
    DriverGpu gpu(driver.api(), 0, {.bytes = binary});
    const auto event = gpu.make_event();
    const auto graph = GraphCapture(gpu).finish();
    EXPECT_EQ(driver.num_graphs, 1);
    EXPECT_EQ(driver.num_events, 1);
    EXPECT_EQ(driver.count_of("destroy_graph"), 1);
    const std::pair<const char*, std::function<void()>> calls[] = {
        {"begin_capture", [&] { gpu.begin_capture(); }},
        {"launch_graph", [&] { gpu.launch(*graph); }},
        {"create_event", [&] { gpu.make_event(); }},
        {"record_event", [&] { gpu.record(*event); }},
        {"wait_for_event", [&] { gpu.wait(*event); }}};
    for (const auto& [name, call] : calls) {
      driver.fail_next(name, 719);
      expect_error(ErrorCode::internal, {"Fake GPU: can't", "CUDA_ERROR_LAUNCH_FAILED"}, call);
    }
    driver.fail_next("instantiate_graph", 719);
    expect_error(ErrorCode::internal, {"instantiate a graph"}, [&] { GraphCapture(gpu).finish(); });
    EXPECT_EQ(driver.count_of("destroy_graph"), 2);
  }
  EXPECT_EQ(driver.num_events, 0);
}

}  // namespace
}  // namespace paceline::cuda::testing
