#include "kernels/cpu/stream_tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace paceline {
namespace {

// Every candidate is timed kRounds times, unless it falls behind. Its fastest time counts: other
// load on the machine only adds to it.
constexpr int kRounds = 5;
constexpr double kMostBehind = 1.1;
// Smaller products depend on the caches more than on how memory is read.
constexpr int64_t kLeastBytes = int64_t{1} << 20;

constexpr WeightStreams kCandidates[] = {
    {1, 8192}, {2, 3072}, {1, 4096}, {4, 2048}, {1, 16384}, {2, 4096}, {1, 6144},
    {2, 2048}, {8, 4096}, {4, 4096}, {1, 2048}, {1, 0},     {1, 256},
};

std::optional<int64_t> read_count(std::string_view text) {
  int64_t count = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), count);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || count < 0) return {};
  return count;
}

std::string words_of(const WeightStreams& streams) {
  return fmt::format("{} panel{} at a time, prefetch {} bytes ahead", streams.panels,
                     streams.panels == 1 ? "" : "s", streams.prefetch_bytes);
}

}  // namespace

std::optional<WeightStreams> fixed_streams() {
  const char* const asked = std::getenv("PACELINE_STREAMS");
  if (asked == nullptr || *asked == '\0') return {};
  constexpr int64_t kMostBytes = 1 << 20;
  const std::string_view text = asked;
  const size_t cross = std::min(text.find('x'), text.size() - 1);
  const auto panels = read_count(text.substr(0, cross)), bytes = read_count(text.substr(cross + 1));
  const bool is_width = panels && (*panels == 1 || *panels == 2 || *panels == 4 || *panels == 8);
  if (!is_width || !bytes || *bytes > kMostBytes) {
    throw Error(
        ErrorCode::invalid,
        fmt::format("PACELINE_STREAMS is \"{}\", expected panels (1, 2, 4 or 8) and a prefetch "
                    "distance (0 to {} bytes), such as 1x8192",
                    text, kMostBytes));
  }
  return WeightStreams{*panels, *bytes};
}

std::vector<WeightStreams> stream_candidates(int64_t most_panels) {
  std::vector<WeightStreams> candidates;
  for (const WeightStreams& streams : kCandidates) {
    if (streams.panels <= most_panels) candidates.push_back(streams);
  }
  return candidates;
}

StreamTuner::Product::Product(StreamTuner& tuner, const PackedMatrix& matrix, int64_t bytes,
                              int64_t rows, int64_t most_panels)
    : tuner_(tuner) {
  if (tuner.fixed_) {
    streams_ = *tuner.fixed_;
  } else if (most_panels > 0 && bytes >= kLeastBytes) {
    const size_t index = tuner.find_shape(matrix, bytes, rows, most_panels);
    const Shape& shape = tuner.shapes_[index];
    streams_ = shape.candidates[shape.next].streams;
    if (shape.is_chosen) return;
    shape_ = index;
    begin_ = std::chrono::steady_clock::now();
  }
}

StreamTuner::Product::~Product() {
  if (!shape_) return;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin_;
  note(tuner_.shapes_[*shape_], seconds.count());
}

size_t StreamTuner::find_shape(const PackedMatrix& matrix, int64_t bytes, int64_t rows,
                               int64_t most_panels) {
  for (size_t i = 0; i < shapes_.size(); ++i) {
    const Shape& shape = shapes_[i];
    if (shape.n == matrix.n && shape.k == matrix.k && shape.bytes == bytes && shape.rows == rows) {
      return i;
    }
  }
  Shape shape{
      .format = matrix.format_name(), .n = matrix.n, .k = matrix.k, .bytes = bytes, .rows = rows};
  for (const WeightStreams& streams : stream_candidates(most_panels)) {
    shape.candidates.push_back({.streams = streams});
  }
  shape.num_left = shape.candidates.size();
  shapes_.push_back(std::move(shape));
  return shapes_.size() - 1;
}

WeightStreams StreamTuner::streams_like(const PackedMatrix& matrix) const {
  if (fixed_) return *fixed_;
  for (const Shape& shape : shapes_) {
    const bool is_like = shape.n == matrix.n && shape.k == matrix.k && shape.rows == 1;
    if (is_like && shape.num_rounds > 0) return shape.candidates.front().streams;
  }
  return {};
}

void StreamTuner::note(Shape& shape, double seconds) {
  Candidate& candidate = shape.candidates[shape.next];
  candidate.seconds = candidate.seconds == 0 ? seconds : std::min(candidate.seconds, seconds);
  if (++shape.next == shape.num_left) end_round(shape);
}

void StreamTuner::end_round(Shape& shape) {
  shape.next = 0;
  const auto left = shape.candidates.begin() + static_cast<std::ptrdiff_t>(shape.num_left);
  std::stable_sort(shape.candidates.begin(), left,
                   [](const Candidate& a, const Candidate& b) { return a.seconds < b.seconds; });
  const double most = shape.candidates.front().seconds * kMostBehind;
  // The first round may read pages for the first time.
  if (++shape.num_rounds > 1) {
    while (shape.candidates[shape.num_left - 1].seconds > most) --shape.num_left;
  }
  shape.is_chosen = shape.num_rounds == kRounds || shape.num_left == 1;
}

std::vector<std::string> StreamTuner::describe() const {
  if (fixed_) return {fmt::format("PACELINE_STREAMS: {}", words_of(*fixed_))};
  std::vector<std::string> lines;
  for (const Shape& shape : shapes_) {
    const auto rate = [&](const Candidate& candidate) {
      return static_cast<double>(shape.bytes) / candidate.seconds / 1e9;
    };
    const std::string products = fmt::format("{} {} x {}, {} row{}", shape.format, shape.n, shape.k,
                                             shape.rows, shape.rows == 1 ? "" : "s");
    if (!shape.is_chosen) {
      lines.push_back(fmt::format("{}: still being measured", products));
      continue;
    }
    const auto slowest = std::max_element(
        shape.candidates.begin(), shape.candidates.end(),
        [](const Candidate& a, const Candidate& b) { return a.seconds < b.seconds; });
    const Candidate& chosen = shape.candidates.front();
    lines.push_back(fmt::format(
        "{}: {}; {:.1f} GB/s, the fastest of {} choices, the slowest {:.1f}", products,
        words_of(chosen.streams), rate(chosen), shape.candidates.size(), rate(*slowest)));
  }
  return lines;
}

}  // namespace paceline
