// EventReader splits a text/event-stream into the data of its events, without comments.
#pragma once

#include <string>
#include <string_view>

namespace paceline::traffic {

class EventReader {
 public:
  // Calls on_data(std::string_view) for each event that `piece` completes.
  template <class OnData>
  void feed(std::string_view piece, OnData&& on_data) {
    // Usually a piece is one whole event, and nothing is copied.
    if (!rest_.empty()) {
      rest_ += piece;
      piece = rest_;
    }
    size_t end = 0;
    while ((end = piece.find("\n\n")) != std::string_view::npos) {
      const std::string_view event = piece.substr(0, end);
      piece.remove_prefix(end + 2);
      if (event.starts_with(kData)) on_data(event.substr(kData.size()));
    }
    rest_ = std::string(piece);
  }

  // False inside an incomplete event.
  bool is_between_events() const { return rest_.empty(); }

 private:
  static constexpr std::string_view kData = "data: ";

  std::string rest_;
};

}  // namespace paceline::traffic
