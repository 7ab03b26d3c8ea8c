// Sequences that the caller batches himself.
#include "capi/call_status.h"
#include "capi/load_options.h"
#include "paceline/batch_context.h"

struct paceline_context {
  paceline::BatchContext batches;
};

namespace paceline::capi {
namespace {

BatchContext& batches_of(paceline_context* context) {
  check_given(context, "context");
  return context->batches;
}

// Room for `rows` rows of logits; empty for NULL.
std::span<float> logits_of(const BatchContext& batches, float* logits, size_t rows) {
  if (logits == nullptr) return {};
  return {logits, rows * static_cast<size_t>(batches.vocab_size())};
}

}  // namespace
}  // namespace paceline::capi

using namespace paceline;
using namespace paceline::capi;

paceline_status paceline_new_context(const paceline_load_options* options, int64_t n_ctx,
                                     paceline_context** context) {
  return guarded([&] {
    begin_result(context, "context");
    *context = new paceline_context{BatchContext::load(load_options(options), n_ctx)};
  });
}

void paceline_free_context(paceline_context* context) { delete context; }

int64_t paceline_context_vocab_size(const paceline_context* context) {
  return context == nullptr ? 0 : context->batches.vocab_size();
}

int64_t paceline_context_room(const paceline_context* context) {
  return context == nullptr ? 0 : context->batches.room();
}

paceline_status paceline_new_sequence(paceline_context* context, int64_t longest,
                                      int32_t* sequence) {
  return guarded([&] {
    check_given(sequence, "sequence");
    *sequence = batches_of(context).create(longest);
  });
}

paceline_status paceline_fork_sequence(paceline_context* context, int32_t sequence,
                                       int32_t* forked) {
  return guarded([&] {
    check_given(forked, "forked");
    *forked = batches_of(context).fork(sequence);
  });
}

paceline_status paceline_free_sequence(paceline_context* context, int32_t sequence) {
  return guarded([&] { batches_of(context).free(sequence); });
}

paceline_status paceline_sequence_length(paceline_context* context, int32_t sequence,
                                         int64_t* length) {
  return guarded([&] {
    check_given(length, "length");
    *length = batches_of(context).length(sequence);
  });
}

paceline_status paceline_prefill(paceline_context* context, int32_t sequence, const int32_t* ids,
                                 size_t num_ids, int64_t chunk, const size_t* rows, size_t num_rows,
                                 float* logits) {
  return guarded([&] {
    BatchContext& batches = batches_of(context);
    if (num_ids > 0) check_given(ids, "ids");
    const size_t last = num_ids - 1;
    std::span<const size_t> wanted;
    if (rows != nullptr) {
      wanted = {rows, num_rows};
    } else if (logits != nullptr && num_ids > 0) {
      wanted = {&last, 1};
    }
    if (!wanted.empty()) check_given(logits, "logits");
    batches.prefill(sequence, {ids, num_ids}, chunk, wanted,
                    logits_of(batches, logits, wanted.size()));
  });
}

paceline_status paceline_decode_batch(paceline_context* context,
                                      const paceline_decode_entry* entries, size_t count,
                                      float* logits) {
  return guarded([&] {
    BatchContext& batches = batches_of(context);
    if (count > 0) check_given(entries, "entries");
    std::vector<BatchContext::Entry> all;
    for (size_t i = 0; i < count; ++i) all.push_back({entries[i].sequence, entries[i].token});
    batches.decode_batch(all, logits_of(batches, logits, count));
  });
}
