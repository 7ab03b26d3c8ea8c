#include "trainer/metrics_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/json_cursor.h"
#include "base/json_writer.h"
#include "base/mapped_file.h"
#include "base/new_file.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBytes = size_t{1} << 30;

TrainingPoint read_point(const JsonCursor& line) {
  TrainingPoint point{.step = line.at("step").integer()};
  if (const auto loss = line.find("loss")) point.loss = loss->number();
  if (const auto loss = line.find("validation_loss")) point.validation_loss = loss->number();
  point.learning_rate = line.at("learning_rate").number();
  point.gradient_norm = line.at("gradient_norm").number();
  point.tokens_per_second = line.at("tokens_per_second").number();
  point.num_tokens = line.at("tokens").integer();
  point.peak_bytes = static_cast<uint64_t>(line.at("peak_bytes").integer());
  return point;
}

// The last line may be cut off: the process was killed while it wrote.
std::vector<TrainingPoint> read_points(const fs::path& path, int64_t last_step) {
  std::vector<TrainingPoint> points;
  if (!fs::exists(path)) return points;
  const std::string text = read_text_file(path, kMaxBytes);
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    const std::string where = fmt::format("{}, line {}", path.string(), ++number);
    const Json json = parse_json_line(std::string_view(text).substr(begin, end - begin), where);
    TrainingPoint point = read_point(JsonCursor(json, where));
    begin = end + 1;
    if (point.step <= last_step) points.push_back(std::move(point));
  }
  return points;
}

[[noreturn]] void throw_system(const fs::path& path) {
  throw Error(ErrorCode::exhausted, fmt::format("{}: {}", path.string(), std::strerror(errno)));
}

}  // namespace

std::string to_json_line(const TrainingPoint& point) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("step", point.step);
  if (point.loss) json.member("loss", *point.loss);
  if (point.validation_loss) json.member("validation_loss", *point.validation_loss);
  json.member("learning_rate", point.learning_rate).member("gradient_norm", point.gradient_norm);
  json.member("tokens_per_second", point.tokens_per_second).member("tokens", point.num_tokens);
  json.member("peak_bytes", static_cast<int64_t>(point.peak_bytes)).end_object();
  return text + "\n";
}

MetricsFile::MetricsFile(fs::path path, int64_t last_step)
    : path_(std::move(path)), points_(read_points(path_, last_step)) {
  NewFile file(path_, NewFile::Existing::replace);
  for (const TrainingPoint& point : points_) file.append(to_json_line(point));
  file.commit();
  fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd_ < 0) throw_system(path_);
}

MetricsFile::~MetricsFile() {
  if (fd_ >= 0) ::close(fd_);
}

void MetricsFile::add(const TrainingPoint& point) {
  const std::string line = to_json_line(point);
  size_t written = 0;
  while (written < line.size()) {
    const ssize_t count = ::write(fd_, line.data() + written, line.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_system(path_);
    written += static_cast<size_t>(count);
  }
  points_.push_back(point);
}

}  // namespace paceline
