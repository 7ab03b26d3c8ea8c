// AdapterBase is what reading and writing an adapter needs to know of the model that it changes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/gguf_metadata.h"
#include "weights/gguf_order.h"

namespace paceline {

// Of a weight [out, in].
struct MatrixSize {
  int64_t out = 0;
  int64_t in = 0;
};

// What stands in front of a module's name in the files of a format.
struct ModulePrefixes {
  std::string layers = "model.";       // of "layers.3.self_attn.q_proj"
  std::string layer_list = "layers.";  // in place of that name's beginning
  std::string head = "";               // of "lm_head"
};

// What transformers' class of a mixture calls a layer's experts.
struct ExpertNames {
  std::string stacked = "mlp.experts";            // whose parameters are gate_up_proj and down_proj
  std::string stacked_in_mlx = "mlp.switch_mlp";  // the same in mlx-lm's
  std::string single = "mlp.experts";             // modules of single experts, in transformers 4
  std::string router = "mlp.gate";                // whose parameter is weight; not gpt-oss's
  std::string router_in_mlx = "mlp.gate";         // not gpt-oss's
  std::string gate = "gate_proj";                 // of one
  std::string up = "up_proj";
  std::string down = "down_proj";
  bool alternates = false;  // rows of gate and up in turn are those of the stacked gate_up_proj

  // Of "gate_proj", "up_proj" or "down_proj".
  const std::string& projection(std::string_view canonical) const;
};

// The module of a GGUF tensor such as "blk.3.attn_q.weight".
struct GgufModule {
  std::string module;  // "layers.3.self_attn.q_proj"
  // As in GgufTensorName: the number of heads whose rows are interleaved in the file; 0: none.
  int64_t interleaved_heads = 0;
  // Likewise the heads that the file has in turns of their groups, in its outputs or its inputs.
  std::optional<GgufHeadGroups> row_groups = {};
  std::optional<GgufHeadGroups> column_groups = {};
  // The matrices of all experts of a layer; `module` is without the expert's number
  // ("layers.3.mlp.experts.up_proj").
  bool is_stack = false;
};

// Without a `size_of` the base isn't known: every module of every size fits, and its layers aren't
// counted. Names are canonical, as in WeightReader but without ".weight".
struct AdapterBase {
  // Nothing for a module that the base lacks or that can't be adapted.
  std::function<std::optional<MatrixSize>(std::string_view module)> size_of = {};
  std::vector<std::string> modules = {};  // all that have a size, for suggestions
  int64_t num_layers = 0;                 // 0: not known

  // What is written; when reading, any known prefix is understood.
  ModulePrefixes peft_prefixes = {};  // as transformers' class of the base names its modules
  ModulePrefixes mlx_prefixes = {};   // as mlx-lm's class does
  ExpertNames expert_names = {};

  // Nothing for a tensor that isn't a module's. Throws Error for a file whose architecture isn't
  // the base's. Without it GGUF adapters are refused.
  std::function<std::optional<GgufModule>(const GgufMetadata& metadata, std::string_view tensor)>
      gguf_module = {};

  // Why adapters in other formats than GGUF don't fit; empty: they do.
  std::string needs_gguf = {};

  bool is_known() const { return size_of != nullptr; }
};

// The canonical name of a module that a file calls `name`, with one of the prefixes of
// decoder_prefixes(). Nothing when the base has no such module.
std::optional<std::string> find_module(const AdapterBase& base, std::string_view name);

// The end of a message about a module that the base lacks: the nearest name that it has.
std::string suggest_module(const AdapterBase& base, std::string_view name);

std::string prefixed(const ModulePrefixes& prefixes, std::string_view module);

// 3 and "self_attn.q_proj" of "layers.3.self_attn.q_proj".
struct LayerModule {
  int64_t layer = 0;
  std::string_view part;
};
// Nothing for a module outside the layers.
std::optional<LayerModule> split_layer_module(std::string_view module);

}  // namespace paceline
