#include "spec/row_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace paceline {
namespace {

constexpr double kMaxWeight = 32.0;          // steps that an average follows
constexpr double kForget = 1.0 - 1.0 / 256;  // of a weight, each step
constexpr double kDrift = 0.1;               // of a step's error, for the other averages
constexpr double kMaxError = 1.15;           // of a step to an average of several
constexpr double kTooFast = 1.4;             // of an average to a step that noise can't explain
constexpr double kMaxFirstError = 2.0;       // of a first step to an estimate from other row counts

constexpr double kErrorShare = 1.0 / 8;  // of a step, in the mean error
constexpr double kMaxMeanError = 0.06;   // beyond what noise makes

}  // namespace

void RowCost::record(int64_t rows, double seconds) {
  if (rows <= 0 || !(seconds > 0.0) || !std::isfinite(seconds)) return;
  ++num_steps_;
  forget();
  Bucket& bucket = buckets_[bucket_of(rows)];
  const auto count = static_cast<double>(rows);
  if (num_points_ > 0) {
    const double expected = seconds_at(count);
    seconds = std::min(seconds, kMaxFirstError * expected);
    // A step far below the average shows that the average came from outliers.
    if (is_measured(bucket) && kTooFast * seconds < expected) bucket = {};
    if (is_measured(bucket)) {
      seconds = std::clamp(seconds, expected / kMaxError, expected * kMaxError);
      follow_drift(seconds / expected);
      if (has_changed(seconds / expected)) return start_anew();
    }
  }
  average(bucket, count, seconds);
  fit();
}

void RowCost::record_draft(int64_t tokens, double seconds) {
  if (tokens <= 0 || !(seconds >= 0.0) || !std::isfinite(seconds)) return;
  double each = seconds / static_cast<double>(tokens);
  if (num_drafts_ > 0 && draft_seconds_ > 0.0)
    each = std::min(each, kMaxFirstError * draft_seconds_);
  num_drafts_ = std::min(num_drafts_ + 1, static_cast<int64_t>(kMaxWeight));
  draft_seconds_ += (each - draft_seconds_) / static_cast<double>(num_drafts_);
}

double RowCost::seconds(int64_t rows) const { return seconds_at(static_cast<double>(rows)); }

bool RowCost::is_fresh(int64_t rows) const {
  const Bucket& bucket = buckets_[bucket_of(rows)];
  const bool contradicts = bucket.seconds > kMaxError * seconds_at(bucket.rows);
  return is_measured(bucket) && num_steps_ - bucket.last_step < kRenewAge && !contradicts;
}

int64_t RowCost::max_measured() const {
  return num_points_ == 0 ? 0 : std::llround(curve_[num_points_ - 1].rows);
}

// One for each count up to 2 * kPerOctave, then kPerOctave for each power of two.
size_t RowCost::bucket_of(int64_t rows) {
  const auto count = static_cast<uint64_t>(rows);
  const int shift = std::max(0, static_cast<int>(std::bit_width(count / kPerOctave)) - 1);
  const uint64_t index = (count >> shift) + static_cast<uint64_t>(shift) * kPerOctave;
  return std::min<size_t>(index, kNumBuckets - 1);
}

// A single step may be an outlier.
bool RowCost::is_measured(const Bucket& bucket) { return bucket.num_steps >= 2; }

void RowCost::forget() {
  for (Bucket& bucket : buckets_) {
    bucket.weight *= kForget;
    if (num_steps_ - bucket.last_step > kMaxAge) bucket.num_steps = 0;
  }
}

// Whether the errors of late were mostly of one sign and large: what drift can't follow.
bool RowCost::has_changed(double ratio) {
  const double error = ratio - 1.0;
  mean_error_ += kErrorShare * (error - mean_error_);
  mean_deviation_ += kErrorShare * (std::abs(error) - mean_deviation_);
  return std::abs(mean_error_) > kMaxMeanError + 0.3 * mean_deviation_;
}

void RowCost::start_anew() {
  buckets_.fill({});
  num_points_ = 0;
  mean_error_ = mean_deviation_ = 0.0;
}

void RowCost::average(Bucket& bucket, double rows, double seconds) {
  if (!is_measured(bucket)) {
    // The first step may have been an outlier.
    const double before =
        bucket.num_steps > 0 ? std::min(bucket.seconds, kMaxError * seconds) : seconds;
    bucket.seconds = (before + std::min(seconds, kMaxError * before)) / 2;
    bucket.rows = rows;
    bucket.weight = static_cast<double>(bucket.num_steps + 1);
  } else {
    bucket.weight = std::min(bucket.weight + 1.0, kMaxWeight);
    bucket.seconds += (seconds - bucket.seconds) / bucket.weight;
    bucket.rows += (rows - bucket.rows) / bucket.weight;
  }
  ++bucket.num_steps;
  bucket.last_step = num_steps_;
}

void RowCost::follow_drift(double ratio) {
  for (Bucket& bucket : buckets_) bucket.seconds *= 1.0 + kDrift * (ratio - 1.0);
}

// Isotonic regression: neighbours that fall share their average (Ayer et al., "An Empirical
// Distribution Function for Sampling with Incomplete Information", 1955).
void RowCost::fit() {
  struct Pool {
    double seconds = 0.0;
    double weight = 0.0;
    size_t end = 0;  // its last point's index + 1
  };
  std::array<Pool, kNumBuckets> pools;
  size_t num_pools = 0;
  num_points_ = 0;
  for (const Bucket& bucket : buckets_) {
    if (!is_measured(bucket)) continue;
    curve_[num_points_++].rows = bucket.rows;
    Pool pool = {bucket.seconds, bucket.weight, num_points_};
    while (num_pools > 0 && pools[num_pools - 1].seconds >= pool.seconds) {
      const Pool& last = pools[--num_pools];
      const double weight = last.weight + pool.weight;
      pool.seconds = (last.seconds * last.weight + pool.seconds * pool.weight) / weight;
      pool.weight = weight;
    }
    pools[num_pools++] = pool;
  }
  size_t point = 0;
  for (size_t i = 0; i < num_pools; ++i) {
    while (point < pools[i].end) curve_[point++].seconds = pools[i].seconds;
  }
}

// The slope from the first point to twice its rows, but no more than all of its seconds.
double RowCost::seconds_below(double rows) const {
  const Point& first = curve_.front();
  const double last = curve_[num_points_ - 1].rows;
  if (rows >= first.rows || num_points_ == 1) return first.seconds;
  const double twice = std::min(2 * first.rows, last);
  const double slope = (seconds_at(twice) - first.seconds) / (twice - first.rows);
  return first.seconds - std::min(slope, first.seconds / first.rows) * (first.rows - rows);
}

double RowCost::seconds_at(double rows) const {
  if (num_points_ == 0) return 0.0;
  const auto end = curve_.begin() + static_cast<int64_t>(num_points_);
  const auto above = std::partition_point(curve_.begin(), end,
                                          [rows](const Point& point) { return point.rows < rows; });
  if (above == curve_.begin()) return seconds_below(rows);
  if (above != end) {
    const Point& below = above[-1];
    const double share = (rows - below.rows) / (above->rows - below.rows);
    return below.seconds + share * (above->seconds - below.seconds);
  }
  const Point& last = end[-1];
  const double half = std::max(last.rows / 2, curve_.front().rows);
  if (half >= last.rows) return last.seconds;
  const double slope = (last.seconds - seconds_at(half)) / (last.rows - half);
  return last.seconds + slope * (rows - last.rows);
}

}  // namespace paceline
