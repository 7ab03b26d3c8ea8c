// PredictionCursor follows an output through a text that it mostly repeats.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace paceline {

// While the output repeats the prediction the cursor advances with it. After a difference it is set
// to where the output's last tokens stand in the prediction: 4 or more of them anywhere, else the
// last one near the expected place, else the last 2 anywhere. The expected place is right if the
// output replaced tokens one for one. Of several places the one with the longest match counts (up
// to kLongest tokens), then the nearest at or after the expected place, then the nearest before it.
// Without a match the cursor goes on at the expected place, but has no place once kMaxMisses tokens
// have differed since the last match of 4 tokens.
class PredictionCursor {
 public:
  static constexpr int64_t kLongest = 8;
  static constexpr int64_t kMaxMisses = 8;

  // Sorts the positions: O(n log n). A prompt that ends in kLongest tokens of the prediction
  // contains some of the output: a preempted sequence begins again with it.
  PredictionCursor(std::span<const int32_t> prediction, std::span<const int32_t> prompt);

  // `text` is the prompt and all output; what is new since the last call is read. A token takes
  // constant time, after a difference a binary search and at most 2 * kMaxCandidates comparisons.
  void advance(std::span<const int32_t> text);

  // What the prediction has after the cursor: empty at its end and when the cursor has no place.
  std::span<const int32_t> rest() const {
    return std::span(prediction_).subspan(static_cast<size_t>(cursor_));
  }

  int64_t num_operations() const { return num_operations_; }  // tokens compared

 private:
  static constexpr int64_t kMaxCandidates = 16;  // in each direction

  struct Place {
    int64_t cursor = 0;
    int64_t length = 0;  // tokens before it that end the text; 0: no place
  };

  int64_t size() const { return static_cast<int64_t>(prediction_.size()); }
  int32_t token(int64_t at) const { return prediction_[static_cast<size_t>(at)]; }
  void step(std::span<const int32_t> text);
  void resynchronise(std::span<const int32_t> text);
  Place look_up(std::span<const int32_t> text);
  Place look_near(int32_t last);
  int64_t match_length(std::span<const int32_t> text, int64_t end);

  std::vector<int32_t> prediction_;
  std::vector<int32_t>
      ends_;  // of every two tokens but the last: by the later, the earlier, the end
  size_t num_read_;
  int64_t cursor_ = 0;
  int64_t expected_ = 0;    // the cursor, had one token been replaced since the last sure match
  int64_t num_agreed_ = 0;  // tokens before the cursor, at least, that the text ends in
  int64_t num_misses_ = 0;  // tokens that differed since the last sure match
  int64_t num_operations_ = 0;
};

}  // namespace paceline
