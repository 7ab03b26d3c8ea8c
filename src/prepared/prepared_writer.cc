#include "prepared/prepared_writer.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "base/block_sum.h"
#include "base/error.h"
#include "prepared/pieces.h"

namespace paceline {
namespace {

// More than any part's fields take in the table, and any key.
constexpr uint64_t kFieldBytes = 256;
constexpr uint64_t kKeyBytes = uint64_t{1} << 20;

// The bytes between the head and the first part.
std::string make_front(const std::string& json, std::span<const uint64_t> sums, uint64_t size) {
  std::string front = json;
  front.resize(rounded_up(front.size(), sizeof(uint64_t)));
  front.append(reinterpret_cast<const char*>(sums.data()), sums.size_bytes());
  PL_CHECK(front.size() <= size, "PreparedWriter: more weights than there is room for");
  front.resize(size);
  return front;
}

}  // namespace

PreparedWriter::PreparedWriter(const std::filesystem::path& path, uint64_t front_bytes,
                               ThreadPool& threads)
    : file_(path, NewFile::Existing::replace),
      threads_(threads),
      first_part_(rounded_up(sizeof(PreparedHead) + front_bytes, kFirstPartAlignment)) {
  file_.reserve(first_part_);
  file_.append(std::string(first_part_, '\0'));
}

void PreparedWriter::add(Part part) {
  has_failed_ = true;
  write_part(part);
  part.bytes = {};
  parts_.push_back(std::move(part));
  has_failed_ = false;
}

void PreparedWriter::write_part(const Part& part) {
  static constexpr std::array<std::byte, kPartAlignment> kZeros{};
  PL_CHECK(part.bytes.size() == part_bytes(part.format), "PreparedWriter: a part of other bytes");
  const auto sums = sums_of(pieces_of(part, sums_.size()), threads_);
  sums_.insert(sums_.end(), sums.begin(), sums.end());
  const uint64_t size = stored_bytes(part.bytes.size());
  file_.reserve(file_.size_bytes() + size);
  file_.append(part.bytes);
  file_.append(std::span(kZeros).first(size - part.bytes.size()));
}

uint64_t PreparedWriter::finish(const PreparedTable& table) {
  has_failed_ = true;
  const uint64_t size = write_front(table);
  file_.commit();
  has_failed_ = false;
  return size;
}

uint64_t PreparedWriter::write_front(const PreparedTable& facts) {
  PreparedTable table = facts;
  table.weights.parts = parts_;
  const std::string json = write_table(table);
  const std::string front = make_front(json, sums_, first_part_ - sizeof(PreparedHead));
  PreparedHead head{.magic = kPreparedMagic,
                    .file_bytes = file_.size_bytes(),
                    .table_bytes = json.size(),
                    .num_sums = sums_.size(),
                    .first_part = first_part_,
                    .front_sum = block_sum(std::as_bytes(std::span(front)), kFrontSeed)};
  head.head_sum = sum_of_head(head);
  file_.overwrite(0, std::as_bytes(std::span(&head, 1)));
  file_.overwrite(sizeof(head), std::as_bytes(std::span(front)));
  return head.file_bytes;
}

uint64_t front_bytes(const PreparedTable& table) {
  uint64_t pieces = 0;
  for (const Part& part : table.weights.parts) pieces += num_pieces(part.bytes.size());
  return rounded_up(write_table(table).size(), sizeof(uint64_t)) + pieces * sizeof(uint64_t);
}

uint64_t front_bytes_at_most(uint64_t num_parts, uint64_t name_bytes, uint64_t weight_bytes) {
  const uint64_t pieces = 2 * num_parts + weight_bytes / kPieceBytes;
  return kKeyBytes + name_bytes + num_parts * kFieldBytes + pieces * sizeof(uint64_t);
}

}  // namespace paceline
