#include "cli/terminal_keys.h"

#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace paceline {
namespace {

constexpr wchar_t kEscape = 0x1b;
constexpr wchar_t kReplacement = 0xFFFD;
constexpr const char* kPasteBegins = "[200~";
constexpr const char* kPasteEnds = "[201~";
// The rest of a mark arrives at once; an Escape key stands alone.
constexpr int kMarkTimeoutMs = 50;
constexpr int kForever = -1;

int length_of(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  return lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
}

wchar_t decoded(std::string_view bytes) {
  const DecodedCodePoint first = decode_utf8(bytes);
  return first.valid && first.size == bytes.size() ? static_cast<wchar_t>(first.code_point)
                                                   : kReplacement;
}

}  // namespace

std::optional<unsigned char> TerminalKeys::next_byte(int timeout_ms) {
  if (!bytes_.empty()) {
    const unsigned char byte = bytes_.front();
    bytes_.pop_front();
    return byte;
  }
  std::array<pollfd, 2> watched = {pollfd{.fd = wake_, .events = POLLIN, .revents = 0},
                                   pollfd{.fd = input_, .events = POLLIN, .revents = 0}};
  while (true) {
    const int ready = poll(watched.data(), watched.size(), timeout_ms);
    if (ready < 0 && errno == EINTR) continue;  // e.g. the window was resized
    if (ready <= 0 || watched[0].revents != 0) return std::nullopt;
    std::array<unsigned char, 4096> block;
    const ssize_t count = read(input_, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    bytes_.assign(block.begin(), block.begin() + count);
    return next_byte(timeout_ms);
  }
}

std::optional<wchar_t> TerminalKeys::next_code_point() {
  const auto lead = next_byte(kForever);
  if (!lead) return std::nullopt;
  std::string text(1, static_cast<char>(*lead));
  for (int i = 1; i < length_of(*lead); ++i) {
    const auto tail = next_byte(kMarkTimeoutMs);
    if (!tail) break;
    if ((*tail & 0xC0) != 0x80) {
      bytes_.push_front(*tail);
      break;
    }
    text.push_back(static_cast<char>(*tail));
  }
  return decoded(text);
}

bool TerminalKeys::follows(const char* mark) {
  std::string seen;
  for (const char* expected = mark; *expected != 0; ++expected) {
    const auto byte = next_byte(kMarkTimeoutMs);
    if (byte) seen.push_back(static_cast<char>(*byte));
    if (!byte || static_cast<char>(*byte) != *expected) {
      bytes_.insert(bytes_.begin(), seen.begin(), seen.end());
      return false;
    }
  }
  return true;
}

std::optional<wchar_t> TerminalKeys::pasted(wchar_t key) {
  const bool is_newline = key == L'\r' || (key == L'\n' && !after_carriage_return_);
  const bool is_second_half = key == L'\n' && after_carriage_return_;
  after_carriage_return_ = key == L'\r';
  if (is_newline) ++pending_newlines_;
  if (is_newline || is_second_half || (key < L' ' && key != L'\t') || key == 0x7F)
    return std::nullopt;
  for (; pending_newlines_ > 0; --pending_newlines_) keys_.push_back(kPastedNewline);
  keys_.push_back(key);
  const wchar_t first = keys_.front();
  keys_.pop_front();
  return first;
}

void TerminalKeys::drop() {
  tcflush(input_, TCIFLUSH);
  bytes_.clear();
  keys_.clear();
  in_paste_ = false;
  pending_newlines_ = 0;
  after_carriage_return_ = false;
}

std::optional<wchar_t> TerminalKeys::next() {
  while (true) {
    if (!keys_.empty()) {
      const wchar_t key = keys_.front();
      keys_.pop_front();
      return key;
    }
    const auto key = next_code_point();
    if (!key) return std::nullopt;
    if (*key == kEscape && follows(in_paste_ ? kPasteEnds : kPasteBegins)) {
      in_paste_ = !in_paste_;
      pending_newlines_ = 0;
      after_carriage_return_ = false;
      continue;
    }
    if (!in_paste_) return key;
    if (const auto shown = pasted(*key)) return shown;
  }
}

}  // namespace paceline
