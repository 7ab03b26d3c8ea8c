#include "tests/cuda/every_order.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>

#include "kernels/cuda/emulation/emulated_device.h"
#include "paceline/error.h"

namespace paceline::cuda::testing {
namespace {

// nullopt where the emulation reports something.
std::optional<std::vector<std::byte>> bytes_without(const std::string& sync,
                                                    EmulationOptions options,
                                                    const DeviceRun& run) {
  options.skipped_sync = sync;
  emulation::EmulatedDevice device(options);
  try {
    return run(device);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<EmulationOptions> every_order() {
  return {
      {.order = ThreadOrder::ascending},
      {.order = ThreadOrder::ascending, .lands_copies_early = true},
      {.order = ThreadOrder::descending, .lands_copies_early = true, .begins_kernels_early = true},
      {.order = ThreadOrder::shuffled, .seed = 1, .num_threads = 2, .begins_kernels_early = true},
      {.order = ThreadOrder::shuffled, .seed = 2, .lands_copies_early = true}};
}

std::string name_of(const EmulationOptions& options) {
  const std::string_view order = options.order == ThreadOrder::ascending    ? "ascending"
                                 : options.order == ThreadOrder::descending ? "descending"
                                                                            : "shuffled";
  return fmt::format("{} (seed {}, {} threads, copies land {}, kernels begin {})", order,
                     options.seed, options.num_threads,
                     options.lands_copies_early ? "early" : "late",
                     options.begins_kernels_early ? "early" : "in turn");
}

std::vector<std::byte> same_in_every_order(const DeviceRun& run) {
  std::vector<std::byte> expected;
  bool is_first = true;
  for (EmulationOptions options : every_order()) {
    options.guards_memory = true;
    const std::unique_ptr<CudaDevice> device = make_emulated_device(options);
    const std::vector<std::byte> bytes = run(*device);
    if (is_first) expected = bytes;
    is_first = false;
    EXPECT_TRUE(bytes == expected) << "other bits when threads run " << name_of(options);
  }
  return expected;
}

std::vector<std::string> needless_syncs(const DeviceRun& run, std::string_view source) {
  emulation::EmulatedDevice device(EmulationOptions{});
  const std::vector<std::byte> expected = run(device);
  std::vector<std::string> needless;
  for (const std::string& sync : device.sync_sites()) {
    if (sync.find(source) == std::string::npos) continue;
    bool is_caught = false;
    for (const EmulationOptions& options : every_order()) {
      is_caught = is_caught || bytes_without(sync, options, run) != expected;
    }
    if (!is_caught) needless.push_back(sync);
  }
  return needless;
}

}  // namespace paceline::cuda::testing
