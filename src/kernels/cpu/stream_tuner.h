// StreamTuner chooses how products of a few rows read their weights, by timing the first products
// of each shape: they run with one choice after another, which changes no bit.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cpu/weight_streams.h"
#include "kernels/packed_matrix.h"

namespace paceline {

// The one choice that PACELINE_STREAMS asks for: "1x8192" is one panel at a time and a prefetch
// 8,192 bytes ahead. Throws Error invalid when the variable says anything else.
std::optional<WeightStreams> fixed_streams();

// What is tried, with so many panels side by side at most.
std::vector<WeightStreams> stream_candidates(int64_t most_panels);

// One thread at a time.
class StreamTuner {
 public:
  explicit StreamTuner(std::optional<WeightStreams> fixed) : fixed_(fixed) {}

  // Times one product, from its construction to its destruction.
  class Product {
   public:
    // Of `rows` rows with `bytes` of weights; `matrix` is the one, or the first, that holds them.
    // The kernel reads up to `most_panels` side by side; 0: the choice doesn't matter to it.
    Product(StreamTuner& tuner, const PackedMatrix& matrix, int64_t bytes, int64_t rows,
            int64_t most_panels);
    ~Product();
    Product(const Product&) = delete;
    Product& operator=(const Product&) = delete;

    const WeightStreams& streams() const { return streams_; }

   private:
    StreamTuner& tuner_;
    std::optional<size_t> shape_;  // that is still being measured
    WeightStreams streams_;
    std::chrono::steady_clock::time_point begin_;
  };

  // What was chosen so far and how, a line a shape.
  std::vector<std::string> describe() const;

 private:
  struct Candidate {
    WeightStreams streams;
    double seconds = 0;  // of its fastest product; 0: none yet
  };
  // Products that are compared with each other.
  struct Shape {
    std::string format;
    int64_t n = 0;
    int64_t k = 0;
    int64_t bytes = 0;  // of the weights
    int64_t rows = 0;
    std::vector<Candidate> candidates;  // the fastest first once it is chosen
    size_t num_left = 0;                // of the candidates, the first ones
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
