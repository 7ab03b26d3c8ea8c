// TraceWriter writes what an engine does, a JSON object a line: requests, cancellations, steps.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "engine/step_record.h"

namespace paceline {

class Engine;

// The first line says what engine it is; `paceline trace` reads the file. Times are microseconds
// since the writer was made. When the disk is full the trace ends there and the engine goes on.
class TraceWriter : public StepObserver {
 public:
  // Throws Error invalid naming the file when it can't be written.
  TraceWriter(const std::string& path, std::string_view model, const Engine& engine);
  ~TraceWriter() override;

  void on_submitted(const Sequence& sequence, int64_t step) override;
  void on_cancelled(RequestId id, int64_t step) override;
  void on_step(const StepRecord& record) override;

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void write_line();

  std::unique_ptr<std::FILE, CloseFile> file_;
  EngineClock::time_point begin_ = EngineClock::now();
  std::string line_;  // reused
};

}  // namespace paceline
