#include "backends/python_backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/json_cursor.h"
#include "base/json_writer.h"

// src/backends/python/child.py, whose path CMake gives.
asm(".pushsection .rodata\n"
    ".global paceline_python_child_begin\n.global paceline_python_child_end\n"
    "paceline_python_child_begin:\n.incbin \"" PACELINE_PYTHON_CHILD
    "\"\npaceline_python_child_end:\n"
    ".byte 0\n.popsection\n");
extern "C" const char paceline_python_child_begin[];
extern "C" const char paceline_python_child_end[];

namespace paceline {
namespace {

constexpr std::string_view kBackends[] = {"transformers", "mlx_lm"};

std::string child_program() {
  return {paceline_python_child_begin,
          static_cast<size_t>(paceline_python_child_end - paceline_python_child_begin)};
}

}  // namespace

std::span<const std::string_view> python_backends() { return kBackends; }

PythonBackend::PythonBackend(const PythonBackendOptions& options, const std::stop_token& cancelled)
    : timeout_(options.timeout), child_(options.backend, {options.python, "-c", child_program()}) {
  const std::string request = object_json([&](JsonWriter& writer) {
    writer.member("op", "load").member("backend", options.backend);
    writer.member("model", options.model).member("dtype", options.dtype);
  });
  const Json answer = ask(request, ErrorCode::unsupported, cancelled);
  version_ = JsonCursor(answer, options.backend, ErrorCode::corrupt).at("version").string();
}

Json PythonBackend::ask(const std::string& request, ErrorCode code,
                        const std::stop_token& cancelled) {
  child_.write_line(request, timeout_);
  const Json answer =
      parse_json(child_.read_line(timeout_, cancelled), child_.name(), ErrorCode::corrupt);
  if (const std::string* error = answer.find_text("error")) {
    constexpr std::string_view kNoPackage =
        "; give the Python of an environment that has it (--python)";
    const bool is_missing = error->starts_with("ModuleNotFoundError");
    throw Error(code, fmt::format("{}: {}{}", child_.name(), *error, is_missing ? kNoPackage : ""));
  }
  return answer;
}

BackendScores PythonBackend::score(std::span<const int32_t> ids, const std::stop_token& cancelled) {
  const std::string request = object_json([&](JsonWriter& writer) {
    writer.member("op", "score").key("ids").begin_array();
    for (const int32_t id : ids) writer.integer(id);
    writer.end_array();
  });
  const Json answer = ask(request, ErrorCode::internal, cancelled);
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
