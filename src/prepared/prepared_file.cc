#include "prepared/prepared_file.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/block_sum.h"
#include "base/checked.h"
#include "base/error.h"
#include "prepared/pieces.h"

namespace paceline {
namespace {

bool is_of_expert(const Part& part) { return part.name.find(".experts.") != part.name.npos; }

}  // namespace

PreparedFile::PreparedFile(const std::filesystem::path& path, std::string_view key,
                           ThreadPool& threads, Verified verified)
    : file_(path) {
  const PreparedHead head = read_head();
  read_front(head);
  if (table_.key != key) fail("was made from other model files than its name stands for");
  verify_parts(head, threads, verified);
}

bool PreparedFile::has_experts() const {
  return std::ranges::any_of(table_.weights.parts, is_of_expert);
}

void PreparedFile::fail(const std::string& what) const {
  throw Error(ErrorCode::corrupt, fmt::format("{}: {}", path().string(), what));
}

PreparedHead PreparedFile::read_head() const {
  const auto bytes = file_.bytes();
  PreparedHead head;
  if (bytes.size() < sizeof(head)) fail(fmt::format("{} bytes, too few", bytes.size()));
  std::memcpy(&head, bytes.data(), sizeof(head));
  if (head.magic != kPreparedMagic) fail("isn't a file of prepared weights of this layout");
  if (head.head_sum != sum_of_head(head)) fail("its head is damaged");
  if (head.file_bytes != bytes.size()) {
    fail(fmt::format("{} bytes, {} were written", bytes.size(), head.file_bytes));
  }
  const auto sums_begin = checked_add(sizeof(head), rounded_up(head.table_bytes, 8));
  const auto sums_bytes = checked_mul(head.num_sums, sizeof(uint64_t));
  const auto end = sums_begin && sums_bytes ? checked_add(*sums_begin, *sums_bytes) : std::nullopt;
  if (head.table_bytes > bytes.size() || !end || *end > head.first_part ||
      head.first_part > bytes.size() || head.first_part % kFirstPartAlignment != 0) {
    fail("its head contradicts itself");
  }
  return head;
}

std::span<const uint64_t> PreparedFile::stored_sums(const PreparedHead& head) const {
  const auto* const first = file_.bytes().data() + sizeof(head) + rounded_up(head.table_bytes, 8);
  return {reinterpret_cast<const uint64_t*>(first), head.num_sums};
}

void PreparedFile::read_front(const PreparedHead& head) {
  const auto front = file_.bytes().first(head.first_part).subspan(sizeof(head));
  if (block_sum(front, kFrontSeed) != head.front_sum) fail("its table is damaged");
  table_ =
      read_table({reinterpret_cast<const char*>(front.data()), head.table_bytes}, path().string());
  uint64_t at = head.first_part;
  for (Part& part : table_.weights.parts) {
    const uint64_t size = stored_bytes(*part_bytes(part.format));
    if (size > file_.bytes().size() - at) fail(fmt::format("{} is beyond its end", part.name));
    part.bytes = file_.bytes().subspan(at, size);
    at += size;
    if (!by_name_.emplace(part.name, &part).second) fail(fmt::format("has {} twice", part.name));
  }
  if (at != file_.bytes().size()) fail("is longer than its table requires");
}

void PreparedFile::verify_parts(const PreparedHead& head, ThreadPool& threads, Verified verified) {
  const auto expected = stored_sums(head);
  std::vector<Piece> pieces;
  uint64_t num_pieces = 0;
  for (const Part& part : table_.weights.parts) {
    const std::vector<Piece> of_part = pieces_of(part, num_pieces);
    num_pieces += of_part.size();
    if (verified == Verified::all_but_experts && is_of_expert(part)) continue;
    pieces.insert(pieces.end(), of_part.begin(), of_part.end());
  }
  if (num_pieces != expected.size()) fail("has another number of sums than of pieces");
  const auto sums = sums_of(pieces, threads);
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (sums[i] == expected[pieces[i].index]) continue;
    fail(fmt::format("piece {} of {} is damaged", pieces[i].index + 1, num_pieces));
  }
  for (Part& part : table_.weights.parts) {
    part.bytes = part.bytes.first(*part_bytes(part.format));
  }
}

const Part& PreparedFile::find(std::string_view name, PartKind kind) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end() || found->second->format.kind != kind) {
    fail(fmt::format("has no {} {}", kind == PartKind::matrix ? "matrix" : "vector", name));
  }
  return *found->second;
}

PackedMatrix PreparedFile::matrix(std::string_view name, int64_t k,
                                  ActivationType activations) const {
  const Part& part = find(name, PartKind::matrix);
  if (part.format.k != k) {
    fail(fmt::format("{} has {} inputs, expected {}", name, part.format.k, k));
  }
  PackedMatrix matrix = lent_matrix(part, activations);
  if (matrix.has_input_order() && !is_permutation(matrix.input_order(), k)) {
    fail(fmt::format("{} has an order of its inputs that isn't one", name));
  }
  return matrix;
}

void PreparedFile::refuse(std::string_view name, int64_t outputs, int64_t expected) const {
  fail(fmt::format("{} has {} outputs, expected {}", name, outputs, expected));
}

OwnedTensor PreparedFile::vector(std::string_view name, int64_t size) const {
  const Part& part = find(name, PartKind::vector);
  if (part.format.n != size) {
    fail(fmt::format("{} has {} elements, expected {}", name, part.format.n, size));
  }
  Buffer buffer = Buffer::lent(part.bytes);
  const Tensor view(buffer.get(), DType::f32, {size});
  return {std::move(buffer), view};
}

size_t PreparedFile::lock() const {
  if (::mlock(file_.bytes().data(), size_bytes()) == 0) return size_bytes();
  throw Error(ErrorCode::exhausted,
              fmt::format("{}: {} bytes can't be locked into RAM: {}; raise the limit of locked "
                          "memory (ulimit -l) or don't ask for it",
                          path().string(), size_bytes(), std::strerror(errno)));
}

}  // namespace paceline
