#include "load/stored_model.h"

#include "load/load_decoder.h"
#include "load/weight_stack.h"
#include "models/family.h"

namespace paceline {
namespace {

// Calls use(stack, config.json, its name) with the stack of checkpoints of the model's files, or
// of dummy weights.
template <class Use>
auto with_weight_stack(const ModelSource& source, LoadFormat format,
                       const std::optional<PublishedQuantisation>& published, const Use& use) {
  const Json config_json = source.files().read_json(kConfig);
  const std::string where = source.files().where(kConfig);
  const bool is_dummy = format == LoadFormat::dummy;
  Memory memory;
  ThreadPool threads(1);
  const WeightStack stack(
      is_dummy ? make_dummy_checkpoint(DType::f32, 0, memory) : source.open_weights(memory),
      {.config = config_json, .where = where, .is_dummy = is_dummy, .published = published}, memory,
      threads);
  return use(stack, config_json, where);
}

template <class Use>
auto with_weight_stack(const ModelSource& source, const Use& use) {
  return with_weight_stack(
      source, LoadFormat::files, PublishedQuantisation::find(source.files()),
      [&](const WeightStack& stack, const Json&, const std::string&) { return use(stack); });
}

}  // namespace

DecoderConfig read_model_config(const ModelSource& source, LoadFormat format) {
  return with_weight_stack(
      source, format, PublishedQuantisation::find(source.files()),
      [](const WeightStack& stack, const Json& config, const std::string& where) {
        return read_decoder_config(config, WeightReader(stack.top()), where);
      });
}

std::vector<CheckpointEntry> read_model_tensors(const ModelSource& source) {
  return with_weight_stack(source, [](const WeightStack& stack) { return stack.top().entries(); });
}

std::string describe_quantised_files(const ModelSource& source) {
  auto published = PublishedQuantisation::find(source.files());
  if (published) published->keeps_float8 = true;
  return with_weight_stack(source, LoadFormat::files, published,
                           [](const WeightStack& stack, const Json&, const std::string&) {
                             return stack.published() == nullptr ? std::string()
                                                                 : stack.published()->description();
                           });
}

uint64_t bytes_added_by_reading(const ModelSource& source) {
  return with_weight_stack(source, [](const WeightStack& stack) {
    return stack.published() == nullptr ? uint64_t{0} : stack.published()->added_bytes();
  });
}

}  // namespace paceline
