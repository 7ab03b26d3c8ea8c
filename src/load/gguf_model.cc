#include "load/gguf_model.h"

#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "load/gguf_config.h"
#include "load/gguf_tokenizer.h"
#include "models/gguf_architecture.h"
#include "weights/gguf_checkpoint.h"

namespace paceline {

ModelFiles gguf_model_files(std::shared_ptr<const GgufFile> file) {
  ModelFiles::Makers makers;
  makers["config.json"] = [file] { return to_json(gguf_config(*file)); };
  makers["generation_config.json"] = [file] {
    return to_json(gguf_generation_config(file->metadata()));
  };
  if (const auto pooling = gguf_pooling(file->metadata())) {
    makers["modules.json"] = [] {
      return std::string(R"([{"path": "1_Pooling", "type": "Pooling"},)"
                         R"( {"path": "2_Normalize", "type": "Normalize"}])");
    };
    makers["1_Pooling/config.json"] = [mode = *pooling] {
      return R"({"pooling_mode": ")" + mode + R"("})";
    };
  }
  if (has_gguf_tokenizer(file->metadata())) {
    makers["tokenizer.json"] = [file] { return gguf_tokenizer_json(file->metadata()); };
    makers["tokenizer_config.json"] = [file] {
      return gguf_tokenizer_config_json(file->metadata());
    };
  }
  return {file->path(), std::move(makers)};
}

std::unique_ptr<Checkpoint> open_gguf_weights(std::shared_ptr<const GgufFile> file,
                                              Memory& memory) {
  const GgufArchitecture& architecture = find_gguf_architecture(file->metadata());
  const GgufHeads heads = architecture.interleaved_rotary ? gguf_heads(*file) : GgufHeads();
  std::vector<GgufTensorName> names;
  for (const GgufTensorInfo& tensor : file->tensors()) {
    auto name = checkpoint_name(architecture, tensor.name);
    if (!name) continue;
    int64_t interleaved = 0;
    if (name->find(".self_attn.q_proj.") != name->npos) interleaved = heads.query;
    if (name->find(".self_attn.k_proj.") != name->npos) interleaved = heads.key;
    const bool is_row = name->ends_with(".shared_expert_gate.weight");
    names.push_back({std::move(*name), tensor.name, interleaved, is_row});
  }
  return make_gguf_checkpoint(std::move(file), std::move(names), memory);
}

}  // namespace paceline
