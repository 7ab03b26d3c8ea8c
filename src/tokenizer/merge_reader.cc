#include "tokenizer/merge_reader.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "tokenizer/json_field.h"
#include "tokenizer/token_decoder.h"

namespace paceline {

MergeReader::MergeReader(const Vocabulary& vocabulary, size_t num_merges, size_t prefix_size,
                         FilePlace place)
    : vocabulary_(vocabulary),
      prefix_size_(prefix_size),
      place_(place),
      merges_(num_merges),
      borders_(num_merges),
      texts_merge_(prefix_size == 0) {}

void MergeReader::add(TokenPair pair, size_t line) {
  if (pair.right.size() < prefix_size_) {
    place_.corrupt(
        fmt::format("model.merges[{}]: {} lacks the prefix", line, in_quotes(pair.right)));
  }
  Pending& merge = pending_[num_pending_++];
  merge.pair = pair;
  merge.line = line;
  merge.joined.assign(pair.left).append(pair.right.substr(prefix_size_));
  merge.left_hash = vocabulary_.prepare(pair.left);
  merge.right_hash = vocabulary_.prepare(pair.right);
  merge.joined_hash = vocabulary_.prepare(merge.joined);
  if (num_pending_ == kBatch) flush();
}

void MergeReader::look_up(Pending& merge) const {
  const auto id_of = [&](std::string_view token, uint64_t hash) {
    const auto id = vocabulary_.find(token, hash);
    if (!id) {
      place_.corrupt(fmt::format("model.merges[{}]: {} isn't in the vocabulary", merge.line,
                                 in_quotes(token)));
    }
    return *id;
  };
  merge.left = id_of(merge.pair.left, merge.left_hash);
  merge.right = id_of(merge.pair.right, merge.right_hash);
  merge.token = id_of(merge.joined, merge.joined_hash);
  merges_.prepare(merge.left, merge.right);
}

void MergeReader::flush() {
  const std::span<Pending> batch = std::span(pending_).first(num_pending_);
  for (Pending& merge : batch) look_up(merge);
  for (const Pending& merge : batch) {
    const auto& [left, right] = merge.pair;
    merges_.set(merge.left, merge.right, {rank_++, merge.token});
    texts_merge_ = texts_merge_ && !fallback_byte(left) && !fallback_byte(right);
    if (!left.empty() && !right.empty()) borders_.add_seam(left, right);
  }
  num_pending_ = 0;
}

void MergeReader::finish(BpeModel& model) {
  flush();
  model.merges = std::move(merges_);
  if (texts_merge_) model.borders = std::move(borders_);
}

}  // namespace paceline
