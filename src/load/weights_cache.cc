#include "load/weights_cache.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/new_file.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMaxStampBytes = 4096;

std::string stamp_text(const FileStamp& stamp) {
  return fmt::format("{} {} {} {}\n", stamp.size_bytes, stamp.inode, stamp.modified_ns,
                     stamp.changed_ns);
}

// Every part has a tensor's name, and no format has more bytes than float32.
uint64_t front_room(const Checkpoint& checkpoint) {
  uint64_t name_bytes = 0, elements = 0;
  for (const CheckpointEntry& entry : checkpoint.entries()) {
    uint64_t product = 1;
    for (const int64_t size : entry.shape) product *= static_cast<uint64_t>(size);
    name_bytes += entry.name.size();
    elements += product;
  }
  return front_bytes_at_most(checkpoint.entries().size(), name_bytes, 2 * 4 * elements);
}

}  // namespace

WeightsCache::WeightsCache(fs::path directory, const WeightsOrigin& origin, ThreadPool& threads)
    : directory_(std::move(directory)),
      files_(origin.files),
      threads_(threads),
      key_(weights_key(origin)),
      path_(directory_ / weights_file_name(key_)) {
  use_.file = path_.string();
}

fs::path WeightsCache::stamp_path() const { return path_.string() + ".verified"; }

bool WeightsCache::was_verified() const {
  try {
    const auto stamp = file_stamp(path_);
    return stamp && read_text_file(stamp_path(), kMaxStampBytes) == stamp_text(*stamp);
  } catch (const Error&) {
    return false;
  }
}

// Without the note the next start verifies everything.
void WeightsCache::note_verified() const {
  try {
    const auto stamp = file_stamp(path_);
    if (!stamp) return;
    NewFile file(stamp_path(), NewFile::Existing::replace);
    file.append(stamp_text(*stamp));
    file.commit();
  } catch (const Error&) {
  }
}

std::unique_ptr<PreparedFile> WeightsCache::find() {
  try {
    const bool is_noted = was_verified();
    const bool is_known = is_written_ || is_noted;  // the sums are of the bytes that were written
    auto file = std::make_unique<PreparedFile>(
        path_, key_, threads_, is_known ? Verified::all_but_experts : Verified::all);
    if (!is_noted && file->has_experts()) note_verified();
    use_.outcome =
        is_written_ ? WeightsCacheUse::Outcome::written : WeightsCacheUse::Outcome::reused;
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

void WeightsCache::fail(const std::string& reason) {
  use_.outcome = WeightsCacheUse::Outcome::failed;
  use_.problem = fmt::format(
      "{}; the next start reads the model's own files too, unless --weights-cache names a "
      "directory "
      "that can be written to and has room",
      reason);
}

std::unique_ptr<PreparedWriter> WeightsCache::begin(const Checkpoint& checkpoint) {
  try {
    std::error_code error;
    fs::create_directories(directory_, error);
    if (error && !fs::is_directory(directory_)) {
      throw Error(ErrorCode::invalid,
                  fmt::format("{}: can't be made: {}", directory_.string(), error.message()));
    }
    return std::make_unique<PreparedWriter>(path_, front_room(checkpoint), threads_);
  } catch (const std::exception& error) {
    fail(error.what());
    return nullptr;
  }
}

bool WeightsCache::finish(PreparedWriter& writer, PreparedTable facts) {
  try {
    if (!are_unchanged(files_)) {
      throw Error(ErrorCode::invalid,
                  fmt::format("{}: not written, since the model's files changed "
                              "while they were read",
                              path_.string()));
    }
    facts.key = key_;
    writer.finish(facts);
    is_written_ = true;
    if (!use_.problem.empty()) use_.problem += ", and it was written anew";
    return true;
  } catch (const std::exception& error) {
    fail(error.what());
    return false;
  }
}

}  // namespace paceline
