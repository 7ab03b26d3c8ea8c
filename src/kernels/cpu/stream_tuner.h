// StreamTuner chooses how products of a few rows read their weights. It times the first products of
// each shape, with one choice after another; no choice changes a bit.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cpu/weight_streams.h"
#include "kernels/packed_matrix.h"

namespace paceline {

// The choice that PACELINE_STREAMS fixes, if it is set: "1x8192" is one panel at a time and a
// prefetch distance of 8,192 bytes. Throws Error invalid when it can't be read.
std::optional<WeightStreams> fixed_streams();

// The choices to try, with at most `most_panels` panels side by side.
std::vector<WeightStreams> stream_candidates(int64_t most_panels);

// One thread at a time.
class StreamTuner {
 public:
  explicit StreamTuner(std::optional<WeightStreams> fixed) : fixed_(fixed) {}

  // Times one product, from its construction to its destruction.
  class Product {
   public:
    // A product of `rows` rows with `bytes` of weights, in `matrix` and perhaps others. The kernel
    // reads up to `most_panels` side by side; 0: it ignores the choice.
    Product(StreamTuner& tuner, const PackedMatrix& matrix, int64_t bytes, int64_t rows,
            int64_t most_panels);
    ~Product();
    Product(const Product&) = delete;
    Product& operator=(const Product&) = delete;

    const WeightStreams& streams() const { return streams_; }

   private:
    StreamTuner& tuner_;
    std::optional<size_t> shape_;  // while it is being measured
    WeightStreams streams_;
    std::chrono::steady_clock::time_point begin_;
  };

  // The best choice so far for one row of such a matrix, for products that aren't timed.
  WeightStreams streams_like(const PackedMatrix& matrix) const;

  // The choices so far and their measurements, a line per shape.
  std::vector<std::string> describe() const;

 private:
  struct Candidate {
    WeightStreams streams;
    double seconds = 0;  // of its fastest product; 0: none yet
  };
  // Products whose times are compared.
  struct Shape {
    std::string format;
    int64_t n = 0;
    int64_t k = 0;
    int64_t bytes = 0;  // of the weights
    int64_t rows = 0;
    std::vector<Candidate> candidates;  // fastest first after each round
    size_t num_left = 0;                // the first ones are still timed
    size_t next = 0;
    int num_rounds = 0;
    bool is_chosen = false;
  };

  size_t find_shape(const PackedMatrix& matrix, int64_t bytes, int64_t rows, int64_t most_panels);
  static void note(Shape& shape, double seconds);
  static void end_round(Shape& shape);

  std::optional<WeightStreams> fixed_;
  std::vector<Shape> shapes_;
};

}  // namespace paceline
