#include "base/bus_error.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

namespace paceline {
namespace {

struct Mapping {
  std::atomic<uintptr_t> begin{0};  // 0: a free slot; written last, cleared first
  uintptr_t end = 0;
  std::array<char, 256> path{};  // its end, if it is longer
};

// The handler reads these without a lock: a mapping that faults is not being unmapped.
constexpr size_t kNumSlots = 1024;
std::array<Mapping, kNumSlots + 1> mappings;  // slot 0 stays unused
std::mutex mappings_mutex;
volatile std::sig_atomic_t bus_error_exit = 0;

// Async-signal-safe. Gives up when standard error can't be written.
void print(std::string_view text) {
  pollfd entry{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&entry, 1, 0) <= 0) return;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

void on_bus_error(int /*signal*/, siginfo_t* info, void* /*context*/) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Mapping& mapping : mappings) {
    const uintptr_t begin = mapping.begin.load(std::memory_order_acquire);
    if (begin == 0 || address < begin || address >= mapping.end) continue;
    print("paceline: ");
    print({mapping.path.data(), ::strnlen(mapping.path.data(), mapping.path.size())});
    print(
        ": a part of this mapped file can't be read any more: it was truncated or its disk failed "
        "while in use; restore the file (or delete it, if it is a weights cache) and restart\n");
    ::_exit(bus_error_exit);
  }
  std::signal(SIGBUS, SIG_DFL);  // the access is repeated, and ends the process
}

}  // namespace

MappingName::MappingName(std::span<const std::byte> bytes, const std::string& path) {
  if (bytes.empty()) return;
  const std::lock_guard lock(mappings_mutex);
  const auto free = std::find_if(mappings.begin() + 1, mappings.end(),
                                 [](const Mapping& one) { return one.begin.load() == 0; });
  if (free == mappings.end()) return;
  const size_t size = std::min(path.size(), free->path.size());
  free->path.fill('\0');
  path.copy(free->path.data(), size, path.size() - size);
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  free->end = begin + bytes.size();
  free->begin.store(begin, std::memory_order_release);
  slot_ = static_cast<size_t>(free - mappings.begin());
}

MappingName::MappingName(MappingName&& other) noexcept : slot_(std::exchange(other.slot_, 0)) {}

MappingName& MappingName::operator=(MappingName&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

MappingName::~MappingName() {
  if (slot_ != 0) mappings[slot_].begin.store(0);
}

void exit_on_bus_error(int exit_code) {
  bus_error_exit = exit_code;
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace paceline
