#include "backends/model_child.h"

#include <fmt/format.h>

#include "backends/child_program.h"
#include "base/error.h"
#include "base/json_cursor.h"
#include "base/json_writer.h"

namespace paceline {
namespace {

std::optional<int64_t> count_of(const JsonCursor& message, std::string_view key) {
  const auto found = message.find(key);
  return found ? std::optional(found->integer({.min = 1})) : std::nullopt;
}

}  // namespace

ModelChild::ModelChild(const PythonBackendOptions& options)
    : process_(options.backend, {options.python, "-c", child_program()}) {
  post(object_json([&](JsonWriter& writer) {
    writer.member("op", "load").member("backend", options.backend);
    writer.member("model", options.model).member("dtype", options.dtype);
    writer.member("device", options.device).member("threads", options.num_threads);
  }));
}

std::optional<Json> ModelChild::poll(std::chrono::milliseconds timeout, int wake) {
  const auto line = process_.poll_line(timeout, wake);
  if (!line) return std::nullopt;
  Json message = parse_json(*line, name(), ErrorCode::corrupt);
  if (!is_ready_) {
    if (const std::string error = child_error(message); !error.empty()) {
      throw Error(ErrorCode::unsupported, fmt::format("{}: {}", name(), error));
    }
    read_facts(message);
    is_ready_ = true;
    return std::nullopt;
  }
  const JsonCursor fields(message, name(), ErrorCode::corrupt);
  if (const auto memory = count_of(fields, "memory_bytes")) facts_.memory_bytes = memory;
  if (fields.contains("info")) return std::nullopt;
  return message;
}

void ModelChild::read_facts(const Json& message) {
  const JsonCursor fields(message, name(), ErrorCode::corrupt);
  facts_.version = fields.at("version").string();
  facts_.vocab_size = count_of(fields, "vocab_size").value_or(0);
  facts_.max_concurrent = count_of(fields, "max_concurrent").value_or(1);
  facts_.memory_bytes = count_of(fields, "memory_bytes");
  facts_.scores = fields.boolean_or("scores", false);
  if (const auto names = fields.find("options")) {
    for (const JsonCursor& one : names->items()) facts_.fields.insert(one.string());
  }
}

std::string child_error(const Json& message) {
  const std::string* error = message.find_text("error");
  if (error == nullptr) return {};
  constexpr std::string_view kNoPackage =
      "; give the Python of an environment that has it (--python)";
  const bool is_missing = error->starts_with("ModuleNotFoundError");
  return fmt::format("{}{}", *error, is_missing ? kNoPackage : "");
}

}  // namespace paceline
