#include "spec/prediction_cursor.h"

#include <algorithm>
#include <tuple>

namespace paceline {
namespace {

constexpr int64_t kSure = 4;     // tokens of a match that is hardly an accident
constexpr int64_t kNearest = 4;  // tokens from the expected place within which one token is a match

}  // namespace

PredictionCursor::PredictionCursor(std::span<const int32_t> prediction,
                                   std::span<const int32_t> prompt)
    : prediction_(prediction.begin(), prediction.end()), num_read_(prompt.size()) {
  for (int64_t end = 2; end < size(); ++end) ends_.push_back(static_cast<int32_t>(end));
  std::sort(ends_.begin(), ends_.end(), [this](int32_t a, int32_t b) {
    return std::tuple(token(a - 1), token(a - 2), a) < std::tuple(token(b - 1), token(b - 2), b);
  });
  const Place place = look_up(prompt);
  if (place.length == kLongest) {
    cursor_ = expected_ = place.cursor;
    num_agreed_ = kLongest;
  }
}

void PredictionCursor::advance(std::span<const int32_t> text) {
  while (num_read_ < text.size()) step(text.first(++num_read_));
}

void PredictionCursor::step(std::span<const int32_t> text) {
  ++expected_;
  ++num_operations_;
  if (cursor_ < size() && token(cursor_) == text.back()) {
    ++cursor_;
    ++num_agreed_;
  } else {
    ++num_misses_;
    resynchronise(text);
  }
  if (num_agreed_ < kSure) return;
  expected_ = cursor_;
  num_misses_ = 0;
}

void PredictionCursor::resynchronise(std::span<const int32_t> text) {
  const bool near = num_misses_ <= kMaxMisses;
  Place place = look_up(text);
  if (near && place.length < kSure) {
    const Place nearest = look_near(text.back());
    if (nearest.length > 0) place = nearest;
  }
  num_agreed_ = place.length;
  if (place.length > 0) {
    cursor_ = place.cursor;
  } else {
    cursor_ = near ? std::min(expected_, size()) : size();
  }
}

PredictionCursor::Place PredictionCursor::look_up(std::span<const int32_t> text) {
  if (text.size() < 2) return {};
  const std::tuple key(text[text.size() - 1], text[text.size() - 2], expected_);
  const auto from = std::partition_point(ends_.begin(), ends_.end(), [&](int32_t end) {
    ++num_operations_;
    return std::tuple(token(end - 1), token(end - 2), int64_t{end}) < key;
  });
  Place best;
  // False once the two tokens before `end` are others.
  const auto consider = [&](int64_t end) {
    const int64_t length = match_length(text, end);
    if (length > best.length) best = {.cursor = end, .length = length};
    return length >= 2;
  };
  const auto after = std::min<int64_t>(ends_.end() - from, kMaxCandidates);
  for (int64_t i = 0; i < after && consider(from[i]); ++i) continue;
  const auto before = std::min<int64_t>(from - ends_.begin(), kMaxCandidates);
  for (int64_t i = 1; i <= before && consider(from[-i]); ++i) continue;
  return best.length >= 2 ? best : Place{};
}

PredictionCursor::Place PredictionCursor::look_near(int32_t last) {
  for (int64_t distance = 0; distance <= kNearest; ++distance) {
    for (const int64_t cursor : {expected_ + distance, expected_ - distance}) {
      ++num_operations_;
      if (cursor > 0 && cursor <= size() && token(cursor - 1) == last)
        return {.cursor = cursor, .length = 1};
    }
  }
  return {};
}

int64_t PredictionCursor::match_length(std::span<const int32_t> text, int64_t end) {
  const int64_t most = std::min({kLongest, end, static_cast<int64_t>(text.size())});
  int64_t length = 0;
  while (length < most &&
         token(end - 1 - length) == text[text.size() - 1 - static_cast<size_t>(length)]) {
    ++length;
  }
  num_operations_ += length + 1;
  return length;
}

}  // namespace paceline
