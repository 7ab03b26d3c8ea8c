// Runs a fuzz target without libFuzzer: over every file of a corpus, and over seeded mutations of
// each.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
// Defined by a target that knows the structure of its input; it then makes the mutations.
extern "C" [[gnu::weak]] std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                                             std::size_t max_size, unsigned seed);

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

// Copies the input to a heap block of exact size, so that AddressSanitizer sees a read beyond it.
void run(const Bytes& input) {
  const Bytes exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

// SplitMix64 (Steele, Lea, Flood 2014): the same mutations on every machine.
std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

Bytes mutate(Bytes bytes, std::uint64_t& state) {
  if (bytes.empty()) return {static_cast<std::uint8_t>(next_random(state))};
  const std::size_t at = next_random(state) % bytes.size();
  const auto here = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  switch (next_random(state) % 5) {
    case 0:
      bytes.resize(at);
      break;
    case 1:
      *here = static_cast<std::uint8_t>(next_random(state));
      break;
    case 2:
      *here = static_cast<std::uint8_t>(*here ^ (1u << (next_random(state) % 8)));
      break;
    case 3:
      bytes.erase(here, here + std::min<std::ptrdiff_t>(8, bytes.end() - here));
      break;
    default: {
      const Bytes copy(here, here + std::min<std::ptrdiff_t>(64, bytes.end() - here));
      bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(next_random(state) % bytes.size()),
                   copy.begin(), copy.end());
    }
  }
  return bytes;
}

Bytes mutate_as_the_target_likes(Bytes bytes, std::uint64_t& state) {
  constexpr std::size_t kRoom = 4096;
  const std::size_t size = bytes.size();
  bytes.resize(size + kRoom);
  bytes.resize(LLVMFuzzerCustomMutator(bytes.data(), size, bytes.size(),
                                       static_cast<unsigned>(next_random(state))));
  return bytes;
}

}  // namespace

// libFuzzer's function for custom mutators.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size,
                                        std::size_t max_size) {
  std::uint64_t state = size;
  for (std::size_t i = 0; i < size; ++i) state = state * 31 + data[i];
  const Bytes mutated = mutate(Bytes(data, data + size), state);
  const std::size_t kept = std::min(mutated.size(), max_size);
  std::copy_n(mutated.begin(), kept, data);
  return kept;
}

int main(int argc, char** argv) {
  constexpr std::string_view kMutations = "--mutations=";
  long num_mutations = 0;
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with(kMutations)) {
      num_mutations = std::strtol(argument.c_str() + kMutations.size(), nullptr, 10);
    } else if (std::filesystem::is_directory(argument)) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(argument)) {
        if (entry.is_regular_file()) files.push_back(entry.path());
      }
    } else {
      files.emplace_back(argument);
    }
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    std::fprintf(stderr, "no corpus file given, or none in the directories given\n");
    return 1;
  }
  run({});
  for (const auto& path : files) {
    if (!std::filesystem::is_regular_file(path)) {
      std::fprintf(stderr, "%s: not a file\n", path.c_str());
      return 1;
    }
    const Bytes original = read_file(path);
    run(original);
    std::uint64_t state = 1;
    Bytes mutated = original;
    for (long i = 0; i < num_mutations; ++i) {
      // Up to eight mutations on top of each other, then from the original again.
      const Bytes& from = i % 8 == 0 ? original : mutated;
      mutated = LLVMFuzzerCustomMutator != nullptr ? mutate_as_the_target_likes(from, state)
                                                   : mutate(from, state);
      run(mutated);
    }
  }
  std::printf("%zu corpus files, %ld mutations each\n", files.size(), num_mutations);
  return 0;
}
