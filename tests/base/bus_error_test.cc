#include "base/bus_error.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/mapped_file.h"
#include "tests/test_directory.h"

namespace paceline {
namespace {

void read_truncated(const std::filesystem::path& path) {
  exit_on_bus_error(70);
  const MappedFile file(path);
  std::filesystem::resize_file(path, 0);
  const volatile std::byte* const last = file.bytes().data() + file.bytes().size() - 1;
  std::exit(static_cast<int>(*last));
}

TEST(BusErrorDeathTest, NamesTheTruncatedFile) {
  const TestDirectory directory;
  const std::filesystem::path path = directory.path() / "truncated_while_mapped.bin";
  std::ofstream(path) << std::string(1 << 16, 'x');
  EXPECT_EXIT(read_truncated(path), testing::ExitedWithCode(70),
              "truncated_while_mapped.bin: a part of this mapped file can't be read any more");
}

void read_past_the_end() {
  exit_on_bus_error(70);
  std::FILE* const file = std::tmpfile();
  auto* const bytes =
      static_cast<volatile char*>(::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, ::fileno(file), 0));
  std::exit(*bytes);
}

TEST(BusErrorDeathTest, OtherBusErrorsKeepTheirSignal) {
  EXPECT_EXIT(read_past_the_end(), testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace paceline
