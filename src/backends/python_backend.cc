#include "backends/python_backend.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_cursor.h"
#include "base/json_writer.h"

namespace paceline {

PythonBackend::PythonBackend(const PythonBackendOptions& options, const std::stop_token& cancelled)
    : timeout_(options.timeout), child_(options) {
  while (!child_.is_ready()) wait(cancelled);
}

std::optional<Json> PythonBackend::wait(const std::stop_token& cancelled) {
  constexpr std::chrono::milliseconds kSlice{50};
  const bool was_ready = child_.is_ready();
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  while (was_ready == child_.is_ready()) {
    if (auto answer = child_.poll(kSlice)) return answer;
    if (cancelled.stop_requested()) {
      throw Error(ErrorCode::cancelled, fmt::format("{}: cancelled", child_.name()));
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      throw Error(ErrorCode::exhausted,
                  fmt::format("{}: the child hasn't answered in time", child_.name()));
    }
  }
  return std::nullopt;
}

BackendScores PythonBackend::score(std::span<const int32_t> ids, const std::stop_token& cancelled) {
  const std::string request = object_json([&](JsonWriter& writer) {
    writer.member("op", "score").key("ids").begin_array();
    for (const int32_t id : ids) writer.integer(id);
    writer.end_array();
  });
  child_.post(request);
  const Json answer = *wait(cancelled);
  if (const std::string error = child_error(answer); !error.empty()) {
    throw Error(ErrorCode::internal, fmt::format("{}: {}", child_.name(), error));
  }
  const JsonCursor fields(answer, child_.name(), ErrorCode::corrupt);
  BackendScores scores;
  for (const JsonCursor& value : fields.at("logprobs").items()) {
    scores.logprobs.push_back(value.number());
  }
  for (const JsonCursor& value : fields.at("best").items()) {
    scores.best.push_back(static_cast<int32_t>(value.integer()));
  }
  if (scores.logprobs.size() + 1 != ids.size() || scores.best.size() != ids.size()) {
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: {} log-probabilities and {} tokens for {} ids, expected {} and {}",
                            child_.name(), scores.logprobs.size(), scores.best.size(), ids.size(),
                            ids.size() - 1, ids.size()));
  }
  return scores;
}

}  // namespace paceline
