// Measures loading, encoding and decoding on one thread. PACELINE_BENCH_TOKENIZER is a directory
// with tokenizer.json, PACELINE_BENCH_TEXT a file. tools/bench_tokenizers.py runs it beside HF
// tokenizers.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "paceline/tokenizer.h"

namespace paceline {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 30;

std::string setting(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) throw std::runtime_error(std::string("set ") + name);
  return value;
}

// A line of /proc/self/status: VmRSS (resident bytes) or VmHWM (their peak).
double resident_bytes(std::string_view name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return 1024.0 * std::stod(line.substr(name.size() + 1));
  }
  return 0;
}

// Runs once in a process, and first: resident memory then grows by loading alone.
void load(benchmark::State& state) {
  const std::string directory = setting("PACELINE_BENCH_TOKENIZER");
  const double before = resident_bytes("VmRSS");
  for (auto _ : state) {
    const Tokenizer tokenizer = Tokenizer::load(directory);
    state.counters["resident_bytes"] = resident_bytes("VmRSS") - before;
    state.counters["peak_bytes"] = resident_bytes("VmHWM") - before;
  }
}
BENCHMARK(load)->Iterations(1)->Unit(benchmark::kMillisecond)->UseRealTime();

struct Fixture {
  Tokenizer tokenizer = Tokenizer::load(setting("PACELINE_BENCH_TOKENIZER"));
  std::string text = read_text_file(setting("PACELINE_BENCH_TEXT"), kMaxTextBytes);
  std::vector<std::string_view> whole = {text};
  std::vector<std::string_view> paragraphs;  // separated by blank lines

  Fixture() {
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find("\n\n", begin), text.size());
      if (begin < end) paragraphs.push_back(std::string_view(text).substr(begin, end - begin));
      begin = end + 2;
    }
  }
};

const Fixture& fixture() {
  static const Fixture loaded;
  return loaded;
}

size_t total_size(const std::vector<std::string_view>& texts) {
  size_t size = 0;
  for (const std::string_view text : texts) size += text.size();
  return size;
}

// `texts` are the fixture's, which thus exists before the clock starts.
void encode(benchmark::State& state, const std::vector<std::string_view>& texts) {
  size_t num_tokens = 0;
  for (auto _ : state) {
    num_tokens = 0;
    for (const std::string_view text : texts) num_tokens += fixture().tokenizer.encode(text).size();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(total_size(texts)));
  state.counters["tokens"] = static_cast<double>(num_tokens);
}

// Counts the bytes of the encoded text.
void decode(benchmark::State& state, const std::vector<std::string_view>& texts) {
  std::vector<std::vector<TokenId>> encoded;
  for (const std::string_view text : texts) encoded.push_back(fixture().tokenizer.encode(text));
  for (auto _ : state) {
    for (const auto& ids : encoded) benchmark::DoNotOptimize(fixture().tokenizer.decode(ids));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(total_size(texts)));
}

// A loaded tokenizer's first call, with empty word caches.
void encode_first(benchmark::State& state) { encode(state, fixture().whole); }
BENCHMARK(encode_first)->Iterations(1)->Unit(benchmark::kMillisecond)->UseRealTime();

void encode_whole(benchmark::State& state) { encode(state, fixture().whole); }
BENCHMARK(encode_whole)->Unit(benchmark::kMillisecond)->UseRealTime();

void encode_paragraphs(benchmark::State& state) { encode(state, fixture().paragraphs); }
BENCHMARK(encode_paragraphs)->Unit(benchmark::kMillisecond)->UseRealTime();

void decode_whole(benchmark::State& state) { decode(state, fixture().whole); }
BENCHMARK(decode_whole)->Unit(benchmark::kMillisecond)->UseRealTime();

void decode_paragraphs(benchmark::State& state) { decode(state, fixture().paragraphs); }
BENCHMARK(decode_paragraphs)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace paceline
