// TraceWriter writes what an engine does, a JSON object a line: requests, cancellations, steps.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "engine/step_record.h"

namespace paceline {

class StateCache;
struct EngineLimits;

// The first line describes the engine; `paceline trace` reads the file (trace_lines.h). When the
// disk is full, the trace ends and the engine goes on; finish() then throws.
class TraceWriter : public StepObserver {
 public:
  // Writes the first line. Throws Error invalid or exhausted naming the file when it can't.
  TraceWriter(const std::string& path, std::string_view model, const EngineLimits& limits,
              const StateCache& cache);
  ~TraceWriter() override;

  // Ends the file. Throws Error exhausted naming it when not everything could be written.
  void finish();

  void on_submitted(const Sequence& sequence, int64_t step) override;
  void on_cancelled(RequestId id, int64_t step) override;
  void on_step(const StepRecord& record) override;

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  template <class Line>
  void write_line(std::string_view type, const Line& line);
  void fail(int reason);  // an errno

  std::string path_;
  std::string problem_;  // empty: none so far
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::string line_;  // reused
};

}  // namespace paceline
