#include "grammar/token_trie.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "paceline/error.h"

namespace paceline {

TokenTrie::TokenTrie(std::span<const std::string> tokens) {
  if (tokens.size() >= kNoToken) {
    throw Error(ErrorCode::unsupported,
                fmt::format("constraints need a vocabulary of less than {} tokens, found {}",
                            kNoToken, tokens.size()));
  }
  constexpr std::array<uint32_t, 3> kPartBytes{8, 32, kMaxTokenBytes};
  std::array<std::vector<uint32_t>, kPartBytes.size()> members;
  bytes_begin_.push_back(0);
  for (uint32_t token = 0; token < tokens.size(); ++token) {
    bytes_ += tokens[token];
    bytes_begin_.push_back(static_cast<uint32_t>(bytes_.size()));
    const size_t size = tokens[token].size();
    if (size == 0 || size > kMaxTokenBytes) continue;
    size_t part = 0;
    while (size > kPartBytes[part]) ++part;
    members[part].push_back(token);
    const auto quotes = static_cast<size_t>(std::ranges::count(tokens[token], '"'));
    if (quotes > 0) quoted_from_[static_cast<uint8_t>(tokens[token][0])].push_back(token);
    if (quotes >= 2) quoted_.push_back(token);
    if (tokens[token].find_first_of(",{") == std::string::npos) continue;
    for (size_t count = 2; count <= std::min(quotes, members_.size() + 1); ++count) {
      members_[count - 2].push_back(token);
    }
  }
  for (size_t i = 0; i < members.size(); ++i) {
    if (!members[i].empty()) add_part(std::move(members[i]));
  }
}

bool TokenTrie::has_longer(std::string_view text) const {
  for (const Part& part : parts_) {
    size_t begin = 0;
    size_t end = part.nodes.size();
    size_t depth = 0;
    while (depth < text.size() && begin < end) {
      const TrieNode node = part.nodes[begin];
      if (node.byte != static_cast<uint8_t>(text[depth])) {
        begin += node.num_nodes;
        continue;
      }
      end = begin + node.num_nodes;
      ++begin;
      ++depth;
    }
    if (depth == text.size() && begin < end) return true;
  }
  return false;
}

void TokenTrie::add_part(std::vector<uint32_t> tokens) {
  std::sort(tokens.begin(), tokens.end(), [&](uint32_t a, uint32_t b) {
    const int order = bytes(a).compare(bytes(b));
    return order != 0 ? order < 0 : a < b;
  });
  Part part;
  for (const uint32_t token : tokens) {
    part.max_bytes = std::max(part.max_bytes, static_cast<uint32_t>(bytes(token).size()));
  }
  std::vector<size_t> path;  // nodes from the root to the last one
  std::string_view last;
  const auto leave = [&](size_t depth) {
    while (path.size() > depth) {
      part.nodes[path.back()].num_nodes = (part.nodes.size() - path.back()) & 0xFFFFFF;
      path.pop_back();
    }
  };
  uint32_t last_token = kNoToken;
  for (const uint32_t token : tokens) {
    const std::string_view text = bytes(token);
    if (text == last) {
      doubles_.emplace_back(last_token, token);
      continue;
    }
    const auto [a, b] = std::mismatch(last.begin(), last.end(), text.begin(), text.end());
    leave(static_cast<size_t>(b - text.begin()));
    while (path.size() < text.size()) {
      path.push_back(part.nodes.size());
      part.nodes.push_back({.byte = static_cast<uint8_t>(text[path.size() - 1]),
                            .depth = path.size() & kMaxTokenBytes,
                            .token = kNoToken,
                            .num_nodes = 1});
    }
    part.nodes.back().token = token & kNoToken;
    last = text;
    last_token = token;
  }
  leave(0);
  parts_.push_back(std::move(part));
}

}  // namespace paceline
