#include "tokenizer/merge_reader.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "tokenizer/token_decoder.h"

namespace paceline {

MergeReader::MergeReader(const Vocabulary& vocabulary, const DocumentCursor& merges,
                         size_t prefix_size)
    : vocabulary_(vocabulary),
      prefix_size_(prefix_size),
      lines_(merges),
      merges_(merges.num_items()),
      borders_(merges.num_items()),
      texts_merge_(prefix_size == 0) {}

void MergeReader::add(TokenPair pair, size_t line) {
  if (pair.right.size() < prefix_size_) {
    fail(line, fmt::format("{} lacks the prefix", shown_text(pair.right)));
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

void MergeReader::fail(size_t line, std::string_view what) const { lines_.item(line).fail(what); }

void MergeReader::look_up(Pending& merge) const {
  const auto id_of = [&](std::string_view token, uint64_t hash) {
    const auto id = vocabulary_.find(token, hash);
    if (!id) fail(merge.line, fmt::format("{} isn't in the vocabulary", shown_text(token)));
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
