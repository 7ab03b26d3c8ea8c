// Checkpoints of a training run: directories that are complete adapters or models, with what a run
// needs to go on as if it had never stopped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/result_files.h"
#include "trainer/trainer.h"

namespace paceline {

// What makes another run of the same steps, as JSON members: a run goes on only with the same.
struct RunIdentity {
  std::vector<std::pair<std::string, std::string>> members;  // name and JSON value
};

class CheckpointFiles {
 public:
  // Checkpoints are in `directory`, which exists.
  explicit CheckpointFiles(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // Writes the state behind the trainer's last step as a new directory, which appears when
  // complete, then removes all but the last two. Throws what NewDirectory and NewFile throw; older
  // checkpoints then stay.
  void save(Trainer& trainer, const RunIdentity& identity, const ResultFiles& result) const;

  // The step of the last complete checkpoint.
  std::optional<int64_t> last_step() const;
  std::filesystem::path path_of(int64_t step) const;

  // Puts the trainer behind that step. Throws Error invalid naming the member in which the run
  // differs; corrupt, naming the file, when a file isn't what was saved.
  void load(int64_t step, Trainer& trainer, const RunIdentity& identity) const;

 private:
  std::vector<int64_t> steps() const;

  std::filesystem::path directory_;
};

}  // namespace paceline
