#include "weights/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

// Keys and names of split models are those of llama.cpp's tools/gguf-split.
constexpr std::string_view kIndexKey = "split.no";  // counts from 0
constexpr std::string_view kCountKey = "split.count";
constexpr std::string_view kTensorCountKey = "split.tensors.count";
constexpr int64_t kMaxShards = 99'999;  // five digits

[[noreturn]] void corrupt(const std::string& file, const std::string& what) {
  throw Error(ErrorCode::corrupt, fmt::format("{}: {}", file, what));
}

std::string shard_suffix(int64_t index, int64_t num_files) {
  return fmt::format("-{:05}-of-{:05}.gguf", index + 1, num_files);
}

void check_shard(const GgufMetadata& metadata, int64_t index, int64_t num_files) {
  const auto found_index = metadata.integer(kIndexKey);
  const auto found_count = metadata.integer(kCountKey);
  if (found_index == index && found_count == num_files) return;
  corrupt(metadata.file(),
          fmt::format("metadata \"{}\" and \"{}\" are {} and {}, expected {} and {}", kIndexKey,
                      kCountKey, found_index ? fmt::to_string(*found_index) : "missing",
                      found_count ? fmt::to_string(*found_count) : "missing", index, num_files));
}

}  // namespace

GgufFile::GgufFile(const std::filesystem::path& path) {
  files_.emplace_back(path);
  GgufContents contents = parse_gguf(files_.front().bytes(), path.string());
  metadata_ = std::move(contents.metadata);
  tensors_ = std::move(contents.tensors);
  const int64_t num_files = metadata_.integer(kCountKey).value_or(1);
  if (num_files < 1 || num_files > kMaxShards) {
    corrupt(metadata_.file(), fmt::format("metadata \"{}\" is {}, expected 1 to {}", kCountKey,
                                          num_files, kMaxShards));
  }
  if (num_files > 1) open_other_shards(num_files);
}

void GgufFile::open_other_shards(int64_t num_files) {
  const std::filesystem::path first = path();
  const std::string name = first.filename().string();
  const std::string suffix = shard_suffix(0, num_files);
  if (metadata_.integer(kIndexKey).value_or(0) != 0 || !name.ends_with(suffix)) {
    corrupt(metadata_.file(),
            fmt::format("one of {} files of a split model; open the first, which is named "
                        "NAME{}",
                        num_files, suffix));
  }
  check_shard(metadata_, 0, num_files);
  const std::string stem = name.substr(0, name.size() - suffix.size());
  for (int64_t index = 1; index < num_files; ++index) {
    const MappedFile& file =
        files_.emplace_back(first.parent_path() / (stem + shard_suffix(index, num_files)));
    GgufContents contents = parse_gguf(file.bytes(), file.path().string());
    check_shard(contents.metadata, index, num_files);
    std::ranges::move(contents.tensors, std::back_inserter(tensors_));
    if (tensors_.size() > kMaxGgufTensors) {
      corrupt(file.path().string(), fmt::format("the files up to this one have {} tensors, at most "
                                                "{} are allowed",
                                                tensors_.size(), kMaxGgufTensors));
    }
  }
  std::ranges::sort(tensors_, {}, &GgufTensorInfo::name);
  const auto twice = std::ranges::adjacent_find(tensors_, {}, &GgufTensorInfo::name);
  if (twice != tensors_.end()) {
    corrupt(metadata_.file(),
            fmt::format("tensor {} is in two files of the split model", quoted_name(twice->name)));
  }
  const auto expected = metadata_.integer(kTensorCountKey);
  if (expected && *expected != static_cast<int64_t>(tensors_.size())) {
    corrupt(metadata_.file(), fmt::format("metadata \"{}\" is {}, but the files have {} tensors",
                                          kTensorCountKey, *expected, tensors_.size()));
  }
}

const GgufTensorInfo* GgufFile::find_tensor(std::string_view name) const {
  const auto at = std::ranges::lower_bound(tensors_, name, {}, &GgufTensorInfo::name);
  return at == tensors_.end() || at->name != name ? nullptr : &*at;
}

void GgufFile::release_pages(const GgufTensorInfo& tensor) const {
  const std::less_equal<const std::byte*> not_after;
  for (const MappedFile& file : files_) {
    const auto bytes = file.bytes();
    if (not_after(bytes.data(), tensor.bytes.data()) &&
        not_after(tensor.bytes.data() + tensor.bytes.size(), bytes.data() + bytes.size())) {
      file.release_pages(tensor.bytes);
    }
  }
}

}  // namespace paceline
