#include "load/weights_cache.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "base/error.h"
#include "prepared/write_prepared.h"

namespace paceline {

namespace fs = std::filesystem;

WeightsCache::WeightsCache(fs::path directory, const WeightsOrigin& origin, ThreadPool& threads)
    : directory_(std::move(directory)),
      files_(origin.files),
      threads_(threads),
      key_(weights_key(origin)),
      path_(directory_ / weights_file_name(key_)) {
  use_.file = path_.string();
}

std::unique_ptr<PreparedFile> WeightsCache::find() {
  try {
    auto file = std::make_unique<PreparedFile>(path_, key_, threads_);
    use_.outcome = WeightsCacheUse::Outcome::reused;
    use_.bytes = file->size_bytes();
    return file;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) refuse(error.what());
    return nullptr;
  }
}

void WeightsCache::refuse(const std::string& reason) {
  use_.outcome = WeightsCacheUse::Outcome::failed;
  use_.bytes = 0;
  use_.problem = reason + "; the model's own files were read instead";
}

void WeightsCache::store(const PreparedWeights& weights, Hash128 digest) {
  try {
    write(weights, digest);
    if (!use_.problem.empty()) use_.problem += ", and it was written anew";
  } catch (const std::exception& error) {
    use_.outcome = WeightsCacheUse::Outcome::failed;
    use_.problem = fmt::format(
        "{}; the next start reads the model's own files too, unless --weights-cache names a "
        "directory that can be written to and has room",
        error.what());
  }
}

void WeightsCache::write(const PreparedWeights& weights, Hash128 digest) {
  if (!are_unchanged(files_)) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: not written, since the model's files changed while they were read",
                            path_.string()));
  }
  std::error_code error;
  fs::create_directories(directory_, error);
  if (error && !fs::is_directory(directory_)) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: can't be made: {}", directory_.string(), error.message()));
  }
  use_.bytes = write_prepared(path_, {.key = key_, .digest = digest, .weights = weights}, threads_);
  use_.outcome = WeightsCacheUse::Outcome::written;
}

}  // namespace paceline
