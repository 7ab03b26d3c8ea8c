#include "base/system_memory.h"
#include "tests/test_directory.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kGibibyte = int64_t{1} << 30;

// A machine of 8 GiB, 6 of them free.
class SystemMemoryTest : public testing::Test {
 protected:
  SystemMemoryTest() {
    write("proc/meminfo",
          "MemTotal:        8388608 kB\nMemFree:          100 kB\nMemAvailable:    6291456 kB\n");
  }

  void write(const fs::path& path, const std::string& text) { temporary_.write(path, text); }
  SystemMemory read() const { return system_memory(root_); }

  TestDirectory temporary_;
  fs::path root_ = temporary_.path();
};

TEST_F(SystemMemoryTest, WithoutGroupsItIsTheMachines) {
  EXPECT_EQ(read(), (SystemMemory{8 * kGibibyte, 6 * kGibibyte}));
}

TEST_F(SystemMemoryTest, AGroupsLimitCountsWhatItUsesWithoutOldFilePages) {
  write("proc/self/cgroup", "0::/app.slice/paceline.service\n");
  const fs::path group = "sys/fs/cgroup/app.slice/paceline.service";
  write(group / "memory.max", "4294967296\n");
  write(group / "memory.current", "3221225472\n");
  write(group / "memory.stat", "anon 1073741824\ninactive_file 2147483648\n");
  EXPECT_EQ(read(), (SystemMemory{4 * kGibibyte, 3 * kGibibyte}));
}

TEST_F(SystemMemoryTest, TheLowestLimitOnTheWayUpCounts) {
  write("proc/self/cgroup", "0::/app.slice/paceline.service\n");
  write("sys/fs/cgroup/app.slice/paceline.service/memory.max", "max\n");
  write("sys/fs/cgroup/app.slice/memory.max", "2147483648\n");
  write("sys/fs/cgroup/app.slice/memory.current", "1073741824\n");
  EXPECT_EQ(read(), (SystemMemory{2 * kGibibyte, kGibibyte}));
}

TEST_F(SystemMemoryTest, AContainersOwnGroupMayBeTheRoot) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "1073741824\n");
  EXPECT_EQ(read(), (SystemMemory{kGibibyte, kGibibyte}));
  write("proc/self/cgroup", "0::/system.slice/not-in-here\n");
  EXPECT_EQ(read(), (SystemMemory{kGibibyte, kGibibyte}));
}

TEST_F(SystemMemoryTest, VersionOneHasItsOwnNames) {
  write("proc/self/cgroup", "5:cpuset:/\n4:hugetlb,memory:/box\n0::/\n");
  write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "2147483648\n");
  write("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "1610612736\n");
  write("sys/fs/cgroup/memory/box/memory.stat", "inactive_file 1\ntotal_inactive_file 536870912\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(read(), (SystemMemory{2 * kGibibyte, kGibibyte}));
}

TEST_F(SystemMemoryTest, ALimitOnTheAddressSpaceCountsWhatIsMapped) {
  write("proc/self/status", "Name:\tpaceline\nVmPeak:\t 4194304 kB\nVmSize:\t 2097152 kB\n");
  write("proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units\n"
        "Max cpu time              unlimited            unlimited            seconds\n"
        "Max address space         3221225472           unlimited            bytes\n");
  EXPECT_EQ(read(), (SystemMemory{3 * kGibibyte, kGibibyte}));
  write("proc/self/limits", "Max address space         unlimited            unlimited  bytes\n");
  EXPECT_EQ(read(), (SystemMemory{8 * kGibibyte, 6 * kGibibyte}));
}

TEST_F(SystemMemoryTest, UseBeyondTheLimitLeavesNothing) {
  write("proc/self/cgroup", "0::/box\n");
  write("sys/fs/cgroup/box/memory.max", "1073741824\n");
  write("sys/fs/cgroup/box/memory.current", "2147483648\n");
  EXPECT_EQ(read(), (SystemMemory{kGibibyte, 0}));
}

TEST_F(SystemMemoryTest, WithoutProcItIsAGuess) {
  EXPECT_EQ(system_memory(root_ / "nowhere"), (SystemMemory{kGibibyte, kGibibyte}));
}

TEST(SystemMemory, OfThisMachineMakesSense) {
  const SystemMemory memory = system_memory();
  EXPECT_GT(memory.free, 0);
  EXPECT_LE(memory.free, memory.total);
}

}  // namespace
}  // namespace paceline
