// A device that several threads call.
#include "kernels/cuda/shared_device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "kernels/cuda/code/elementwise.h"
#include "kernels/cuda/launch.h"

namespace paceline::cuda {
namespace {

constexpr size_t kCount = 64;
constexpr size_t kBytes = kCount * sizeof(float);

// Adds 1 to each of the floats there.
void add_ones(CudaDevice& device, float* values, float* ones) {
  launch<Add>(device, {1}, {.x = {values, 0}, .y = {ones, 0}, .out = {values, 0}, .width = kCount});
}

class SharedDeviceTest : public ::testing::Test {
 protected:
  float* floats(float value) {
    auto* const block = static_cast<float*>(device_->allocate(kBytes));
    const std::vector<float> values(kCount, value);
    device_->copy_to_device(block, values.data(), kBytes);
    return block;
  }
  float read(const float* block) {
    std::vector<float> values(kCount);
    device_->copy_from_device(values.data(), block, kBytes);
    for (const float value : values) EXPECT_EQ(value, values[0]);
    return values[0];
  }

  std::unique_ptr<CudaDevice> device_ = share_device(make_emulated_device({.guards_memory = true}));
};

TEST_F(SharedDeviceTest, ThreadsCopyAndComputeSideBySide) {
  constexpr int kRounds = 60;
  const auto count_up = [this] {
    float* const ones = floats(1.0f);
    float* const values = floats(0.0f);
    for (int i = 0; i < kRounds; ++i) add_ones(*device_, values, ones);
    EXPECT_EQ(read(values), static_cast<float>(kRounds));
    device_->release(values, kBytes);
    device_->release(ones, kBytes);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(count_up);
  for (std::thread& thread : threads) thread.join();
}

// Copies would be refused while a graph is captured, and a release would spoil it.
TEST_F(SharedDeviceTest, ACaptureKeepsOthersWaiting) {
  float* const ones = floats(1.0f);
  float* const values = floats(0.0f);
  std::atomic<bool> is_over = false;
  std::thread other([&] {
    while (!is_over) device_->release(floats(2.0f), kBytes);
  });
  for (int round = 0; round < 20; ++round) {
    GraphCapture capture(*device_);
    add_ones(*device_, values, ones);
    std::this_thread::yield();
    add_ones(*device_, values, ones);
    const auto graph = capture.finish();
    device_->launch(*graph);
    device_->launch(*graph);
  }
  EXPECT_EQ(read(values), 80.0f);
  is_over = true;
  other.join();
}

// A call that throws, and a capture that is given up, leave the device to others.
TEST_F(SharedDeviceTest, ErrorsLeaveItUsable) {
  {
    GraphCapture capture(*device_);
    EXPECT_ANY_THROW(device_->allocate(8));
  }
  EXPECT_ANY_THROW(device_->allocate(size_t{1} << 50));
  std::thread([this] { EXPECT_EQ(read(floats(3.0f)), 3.0f); }).join();
}

}  // namespace
}  // namespace paceline::cuda
