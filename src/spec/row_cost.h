// RowCost estimates how long a step takes from its number of rows, by the steps so far.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace paceline {

// A curve that never falls, through the averages of row counts that differ by less than an eighth.
// A straight line would not do: on a CPU rows are nearly free until the arithmetic takes longer
// than reading the weights, which is where a draft has to end. An average follows its last 32
// steps; every step moves the others too (contexts grow, the machine gets other load), and one that
// isn't renewed for kMaxAge steps is dropped. Outliers are cut to a small multiple of the estimate.
// A value: no allocation, deterministic.
class RowCost {
 public:
  // A step that only decoded and verified.
  void record(int64_t rows, double seconds);
  // A call of the drafter that proposed `tokens` tokens.
  void record_draft(int64_t tokens, double seconds);

  // Between measured row counts a straight line, above all of them the slope of their upper half,
  // below all of them that of their lower part; 0 without any.
  double seconds(int64_t rows) const;
  // Of the drafter, per proposed token.
  double draft_seconds() const { return draft_seconds_; }

  // Whether the row count, or one that differs by less than an eighth, was measured in the last
  // kRenewAge steps, and not slower than larger ones.
  bool is_fresh(int64_t rows) const;
  // The largest measured row count; 0 without any.
  int64_t max_measured() const;

 private:
  static constexpr int64_t kRenewAge = 256;
  static constexpr int64_t kMaxAge = 1024;
  static constexpr int kPerOctave = 8;
  static constexpr int kNumBuckets = 10 * kPerOctave;

  struct Bucket {
    double rows = 0.0;
    double seconds = 0.0;
    double weight = 0.0;  // steps, at most kMaxWeight, less with age
    int64_t num_steps = 0;
    int64_t last_step = 0;
  };
  struct Point {
    double rows = 0.0;
    double seconds = 0.0;
  };

  static size_t bucket_of(int64_t rows);
  static bool is_measured(const Bucket& bucket);
  void forget();
  bool has_changed(double ratio);
  void start_anew();
  void average(Bucket& bucket, double rows, double seconds);
  void follow_drift(double ratio);
  void fit();
  double seconds_at(double rows) const;
  double seconds_below(double rows) const;

  std::array<Bucket, kNumBuckets> buckets_;
  std::array<Point, kNumBuckets> curve_;  // of the measured buckets
  size_t num_points_ = 0;
  int64_t num_steps_ = 0;
  double mean_error_ = 0.0;  // relative, of measured row counts
  double mean_deviation_ = 0.0;
  double draft_seconds_ = 0.0;
  int64_t num_drafts_ = 0;
};

}  // namespace paceline
