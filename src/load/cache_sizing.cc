#include "load/cache_sizing.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/divide_up.h"
#include "base/error.h"
#include "layers/kv_storage.h"

namespace paceline {
namespace {

constexpr int64_t kSavedTokens = 512;  // as in Sequence::next_saved_state

// Bytes of one block over all layers of a group.
size_t group_block_bytes(const DecoderConfig& config, size_t group, const CacheRequest& request) {
  size_t bytes = 0;
  for (int64_t i = 0; i < config.num_layers(); ++i) {
    if (static_cast<size_t>(cache_group_of(config, i)) != group) continue;
    const KvLayer layer = kv_layer(config, i, request.state_dtype);
    bytes += kv_block_bytes(layer, request.block_size, request.dtype);
  }
  return bytes;
}

size_t open_block_bytes(const DecoderConfig& config) {
  return state_bytes_of(config, DType::f32).open_rows;
}

// Blocks of one sequence of `length` tokens in a group.
int64_t sequence_blocks(int64_t window, int64_t length, const CacheRequest& request) {
  if (window == 0) return divide_up(length, request.block_size);
  const int64_t held = std::min(length, window + request.max_batched_tokens);
  return divide_up(held, request.block_size) + 1;  // both ends may be inside blocks
}

size_t bytes_for(const DecoderConfig& config, const CacheRequest& request,
                 const std::vector<CacheGroup>& groups) {
  size_t bytes = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    const size_t block = groups[g].holds_open_rows ? open_block_bytes(config)
                                                   : group_block_bytes(config, g, request);
    bytes += static_cast<size_t>(groups[g].num_blocks) * block;
  }
  return bytes;
}

// Sequences that may run at once with that many states: half as many, so that each has a state that
// is saved beside its own.
int64_t running_with(int64_t num_states, const CacheRequest& request) {
  return std::min(divide_up(num_states, int64_t{2}), request.max_num_seqs);
}

// As many states of group `group`, and open rows of those that run, as `bytes` hold.
int64_t states_within(const DecoderConfig& config, const CacheRequest& request, size_t group,
                      size_t bytes) {
  const size_t state = group_block_bytes(config, group, request);
  const size_t open_rows = open_block_bytes(config);
  const size_t pair = 2 * state + open_rows;
  const auto num_pairs = std::min(static_cast<int64_t>(bytes / pair), request.max_num_seqs);
  const size_t left = bytes - static_cast<size_t>(num_pairs) * pair;
  if (num_pairs == request.max_num_seqs) return 2 * num_pairs + static_cast<int64_t>(left / state);
  return 2 * num_pairs + (left >= state + open_rows ? 1 : 0);
}

// Of the group after `others`.
int64_t state_blocks(const DecoderConfig& config, const CacheRequest& request,
                     const std::vector<CacheGroup>& others, int64_t context) {
  const size_t bytes = bytes_for(config, request, others);
  const int64_t affordable = states_within(config, request, others.size(), bytes);
  const int64_t most = request.max_num_seqs * (2 + context / kSavedTokens);
  return std::clamp<int64_t>(affordable, 1, most);
}

// Groups of states are the last but one, their open rows the last.
const CacheGroup& states_of(std::span<const CacheGroup> groups) {
  return groups[groups.size() - 2];
}

void set_states(std::vector<CacheGroup>& groups, int64_t num_states, const CacheRequest& request) {
  groups[groups.size() - 2].num_blocks = num_states;
  groups.back().num_blocks = running_with(num_states, request);
}

// Gives the states what the others leave of the budget: up to two of each sequence, or fewer than
// their share where the context needs more than its own; without others, up to those of every
// kSavedTokens.
void use_left_bytes(const DecoderConfig& config, const CacheRequest& request, size_t budget,
                    int64_t context, std::vector<CacheGroup>& groups) {
  if (!groups.back().is_recurrent) return;
  const int64_t share = states_of(groups).num_blocks;
  set_states(groups, 0, request);
  const size_t others = bytes_for(config, request, groups);
  const size_t left = budget - std::min(budget, others);
  const int64_t affordable = states_within(config, request, groups.size() - 2, left);
  const int64_t saved = groups.size() == 2 ? context / kSavedTokens : 0;
  const int64_t most = request.max_num_seqs * (2 + saved);
  int64_t num_states = std::max(share, std::min(most, affordable));
  if (request.memory_bytes) num_states = std::clamp<int64_t>(affordable, 1, num_states);
  set_states(groups, num_states, request);
}

// The groups, if full-attention ones have `full_blocks`.
std::vector<CacheGroup> groups_with(const DecoderConfig& config, const CacheRequest& request,
                                    int64_t full_blocks, int64_t context) {
  std::vector<CacheGroup> groups;
  for (const auto& [is_recurrent, window, holds_open_rows] : cache_groups(config)) {
    if (holds_open_rows) {
      const int64_t num_running = running_with(groups.back().num_blocks, request);
      groups.push_back({.num_blocks = num_running, .is_recurrent = true, .holds_open_rows = true});
      continue;
    }
    if (is_recurrent) {
      groups.push_back(
          {.num_blocks = state_blocks(config, request, groups, context), .is_recurrent = true});
      continue;
    }
    const int64_t one = sequence_blocks(window, context, request);
    const int64_t all = one * request.max_num_seqs;
    const int64_t wanted = window == 0 ? full_blocks : std::max(one, std::min(all, full_blocks));
    groups.push_back({.window = window, .num_blocks = std::min(wanted, std::max(all, one))});
  }
  return groups;
}

// The same with one state.
std::vector<CacheGroup> smallest_groups(const DecoderConfig& config, const CacheRequest& request,
                                        int64_t full_blocks, int64_t context) {
  std::vector<CacheGroup> groups = groups_with(config, request, full_blocks, context);
  if (groups.back().is_recurrent) set_states(groups, 1, request);
  return groups;
}

// What the smallest cache holds, and what would make it smaller.
std::string describe_smallest(const std::vector<CacheGroup>& groups, const CacheRequest& request) {
  const std::string block = fmt::format("a block of {} tokens", request.block_size);
  const CacheGroup& last = groups.back();  // of states, of the longest window, or the only group
  if (last.is_recurrent) return block + ", and a state of a sequence";
  if (last.window == 0) return block;
  return fmt::format(
      "{}{} blocks for a window of {} tokens and the {} of a step: a smaller "
      "--max-num-batched-tokens or --max-model-len needs fewer",
      groups.front().window == 0 ? block + " and " : "", last.num_blocks, last.window,
      request.max_batched_tokens);
}

}  // namespace

size_t sequence_bytes(const DecoderConfig& config, int64_t length, DType dtype, DType state_dtype) {
  size_t bytes = static_cast<size_t>(length) * kv_token_bytes(config, dtype);
  const StateBytes states = state_bytes_of(config, state_dtype);
  return bytes + states.state + states.open_rows;
}

StateBytes state_bytes_of(const DecoderConfig& config, DType dtype) {
  StateBytes bytes;
  for (int64_t i = 0; i < config.num_layers(); ++i) {
    const LayerStateElements elements = state_elements(config, i);
    bytes.state += state_bytes(elements, dtype);
    bytes.open_rows += open_rows_bytes(elements);
  }
  return bytes;
}

size_t kv_token_bytes(const DecoderConfig& config, DType dtype) {
  size_t bytes = 0;
  for (int64_t i = 0; i < config.num_layers(); ++i) {
    const KvLayer layer = kv_layer(config, i, DType::f32);
    if (!layer.has_states()) bytes += kv_block_bytes(layer, 1, dtype);
  }
  return bytes;
}

size_t kv_read_bytes(const DecoderConfig& config, int64_t layer_index, DType dtype) {
  const int64_t source = config.layers[static_cast<size_t>(layer_index)].shares_cache_of;
  const KvLayer layer = kv_layer(config, source == kOwnCache ? layer_index : source, DType::f32);
  return kv_block_bytes(layer, 1, dtype);
}

CacheSize size_cache(const DecoderConfig& config, const CacheRequest& request, size_t free_memory) {
  const size_t budget = request.memory_bytes.value_or(
      static_cast<size_t>(request.useful_share * static_cast<double>(free_memory)));
  const int64_t context = request.max_model_len.value_or(config.max_position);
  const int64_t context_blocks = divide_up(context, request.block_size);
  const int64_t at_least = request.memory_bytes ? 1 : kMinCacheBlocks;
  const int64_t at_most = context_blocks * request.max_num_seqs;
  const auto fits = [&](int64_t blocks) {
    return bytes_for(config, request, groups_with(config, request, blocks, context)) <= budget;
  };

  // The most blocks within the budget, by bisection: bytes grow with the count.
  int64_t low = std::min(at_least, at_most), high = std::max(at_most, low);
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  int64_t blocks = low;
  if (request.memory_bytes && !fits(blocks)) {
    const auto smallest = smallest_groups(config, request, 1, context);
    throw Error(
        ErrorCode::exhausted,
        fmt::format("--kv-cache-memory-bytes: {} bytes, expected at least {} ({})", budget,
                    bytes_for(config, request, smallest), describe_smallest(smallest, request)));
  }
  if (request.max_model_len && blocks < context_blocks) {
    const size_t needed =
        bytes_for(config, request, smallest_groups(config, request, context_blocks, context));
    if (request.memory_bytes && needed > budget) {
      throw Error(
          ErrorCode::exhausted,
          fmt::format(
              "--max-model-len {}: needs {} bytes of cache, --kv-cache-memory-bytes allows {}",
              context, needed, budget));
    }
    blocks = context_blocks;
  }
  CacheSize size;
  size.groups = groups_with(config, request, blocks, context);
  use_left_bytes(config, request, budget, context, size.groups);
  const bool has_full_group = size.groups[0].window == 0;
  size.max_model_len = has_full_group ? std::min(context, blocks * request.block_size) : context;
  size.bytes = bytes_for(config, request, size.groups);
  return size;
}

}  // namespace paceline
