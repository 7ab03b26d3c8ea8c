// Writes the models of stored_model(): two layers of the llama architecture, with rows of 256
// elements.
#include <fmt/format.h>

#include <map>
#include <random>

#include "base/error.h"
#include "tests/llm/random_blocks.h"
#include "tests/llm/stored_formats.h"
#include "tests/weights/gguf_writer.h"
#include "tests/weights/written_files.h"
#include "weights/safetensors_writer.h"

namespace paceline::testing {
namespace {

constexpr uint64_t kLength = 256;  // a multiple of all block sizes of GGUF
constexpr uint64_t kStoredVocab = 256, kHeads = 8, kKvHeads = 2, kHeadDim = 32;
constexpr int kLayers = 2;

struct Matrix {
  std::string gguf_name, hf_name;  // without ".weight"
  uint64_t rows = 0;
};

std::vector<Matrix> matrices() {
  std::vector<Matrix> all = {{"token_embd", "model.embed_tokens", kStoredVocab},
                             {"output", "lm_head", kStoredVocab}};
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string gguf = fmt::format("blk.{}.", layer);
    const std::string hf = fmt::format("model.layers.{}.", layer);
    all.push_back({gguf + "attn_q", hf + "self_attn.q_proj", kHeads * kHeadDim});
    all.push_back({gguf + "attn_k", hf + "self_attn.k_proj", kKvHeads * kHeadDim});
    all.push_back({gguf + "attn_v", hf + "self_attn.v_proj", kKvHeads * kHeadDim});
    all.push_back({gguf + "attn_output", hf + "self_attn.o_proj", kLength});
    all.push_back({gguf + "ffn_gate", hf + "mlp.gate_proj", kLength});
    all.push_back({gguf + "ffn_up", hf + "mlp.up_proj", kLength});
    all.push_back({gguf + "ffn_down", hf + "mlp.down_proj", kLength});
  }
  return all;
}

std::vector<Matrix> norms() {
  std::vector<Matrix> all = {{"output_norm", "model.norm", 0}};
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string gguf = fmt::format("blk.{}.", layer);
    const std::string hf = fmt::format("model.layers.{}.", layer);
    all.push_back({gguf + "attn_norm", hf + "input_layernorm", 0});
    all.push_back({gguf + "ffn_norm", hf + "post_attention_layernorm", 0});
  }
  return all;
}

std::string gguf_file(const std::vector<GgufType>& types) {
  GgufWriter file;
  file.string("general.architecture", "llama").number("llama.block_count", uint32_t{kLayers});
  file.number("llama.context_length", uint32_t{256});
  file.number("llama.embedding_length", uint32_t{kLength});
  file.number("llama.feed_forward_length", uint32_t{kLength});
  file.number("llama.attention.head_count", uint32_t{kHeads});
  file.number("llama.attention.head_count_kv", uint32_t{kKvHeads});
  file.number("llama.attention.layer_norm_rms_epsilon", 1e-6f);
  std::mt19937_64 random(17);
  size_t turn = 0;
  for (const Matrix& matrix : matrices()) {
    const GgufType type = types[turn++ % types.size()];
    file.tensor({matrix.gguf_name + ".weight",
                 type,
                 {matrix.rows, kLength},
                 random_blocks(type, matrix.rows * kLength, random)});
  }
  for (const Matrix& norm : norms()) {
    file.floats(norm.gguf_name + ".weight", {kLength}, std::vector<float>(kLength, 0.75f));
  }
  return file.file();
}

template <class T>
std::string rounded_bytes(const std::vector<float>& values) {
  std::vector<T> rounded;
  for (const float value : values) rounded.push_back(from_float<T>(value));
  return bytes_of(rounded);
}

FileTensor float_tensor(std::string name, DType dtype, std::vector<uint64_t> shape,
                        const std::vector<float>& values) {
  return with_float_dtype(dtype, [&]<class T>() -> FileTensor {
    return {std::move(name), std::string(safetensors_dtype_name(dtype)), std::move(shape),
            rounded_bytes<T>(values)};
  });
}

// Formats take turns with the possible types of scales.
DType scales_dtype(const AffineFormat& format) {
  constexpr DType kTypes[] = {DType::bf16, DType::f16, DType::f32};
  return kTypes[(format.bits + format.group_size / 32) % 3];
}

// Codes are random words.
void add_mlx_matrix(const Matrix& matrix, const AffineFormat& format, std::mt19937_64& random,
                    std::vector<FileTensor>& tensors) {
  const uint64_t words = kLength * static_cast<uint64_t>(format.bits) / 32;
  std::vector<uint32_t> codes(matrix.rows * words);
  for (uint32_t& word : codes) word = static_cast<uint32_t>(random());
  tensors.push_back({matrix.hf_name + ".weight", "U32", {matrix.rows, words}, bytes_of(codes)});
  const auto largest = static_cast<float>((1 << format.bits) - 1);
  const std::vector<uint64_t> shape = {matrix.rows,
                                       kLength / static_cast<uint64_t>(format.group_size)};
  std::uniform_real_distribution<float> spread(0.5f, 1.5f);  // makes groups differ
  std::vector<float> scales, biases;
  for (uint64_t i = 0; i < shape[0] * shape[1]; ++i) {
    scales.push_back(spread(random) * 0.35f / largest);
    biases.push_back(-0.5f * largest * scales.back());
  }
  const DType dtype = scales_dtype(format);
  tensors.push_back(float_tensor(matrix.hf_name + ".scales", dtype, shape, scales));
  tensors.push_back(float_tensor(matrix.hf_name + ".biases", dtype, shape, biases));
}

std::string mlx_config(const std::vector<AffineFormat>& formats) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("model_type", "llama").key("architectures").begin_array();
  json.string("LlamaForCausalLM").end_array();
  for (const auto& [name, value] :
       {std::pair{"vocab_size", kStoredVocab}, std::pair{"hidden_size", kLength},
        std::pair{"intermediate_size", kLength}, std::pair{"num_hidden_layers", uint64_t{kLayers}},
        std::pair{"num_attention_heads", kHeads}, std::pair{"num_key_value_heads", kKvHeads},
        std::pair{"head_dim", kHeadDim}, std::pair{"max_position_embeddings", uint64_t{256}}}) {
    json.key(name).unsigned_integer(value);
  }
  json.member("rms_norm_eps", 1e-6).member("tie_word_embeddings", false);
  const auto add_format = [&json](const AffineFormat& format) {
    json.key("group_size").unsigned_integer(static_cast<uint64_t>(format.group_size));
    json.key("bits").unsigned_integer(static_cast<uint64_t>(format.bits));
  };
  json.key("quantization").begin_object();
  add_format(formats.front());
  json.member("mode", "affine");
  size_t turn = 0;
  for (const Matrix& matrix : matrices()) {
    json.key(matrix.hf_name).begin_object();
    add_format(formats[turn++ % formats.size()]);
    json.end_object();
  }
  json.end_object().end_object();
  return text;
}

std::string mlx_weights(const std::vector<AffineFormat>& formats) {
  std::vector<FileTensor> tensors;
  std::mt19937_64 random(18);
  size_t turn = 0;
  for (const Matrix& matrix : matrices()) {
    add_mlx_matrix(matrix, formats[turn++ % formats.size()], random, tensors);
  }
  const std::vector<float> weights(kLength, 0.75f);
  for (const Matrix& norm : norms()) {
    tensors.push_back(float_tensor(norm.hf_name + ".weight", DType::f32, {kLength}, weights));
  }
  return safetensors_file(tensors);
}

}  // namespace

std::string stored_model(const StoredFormat& format) {
  static const TestDirectory directory;
  static std::map<std::string, std::string> written;
  std::string& path = written[format.name];
  if (!path.empty()) return path;
  if (!format.types.empty()) {
    directory.write(format.name + ".gguf", gguf_file(format.types));
    return path = (directory.path() / (format.name + ".gguf")).string();
  }
  std::filesystem::create_directory(directory.path() / format.name);
  directory.write(format.name + "/config.json", mlx_config(format.groupings));
  directory.write(format.name + "/model.safetensors", mlx_weights(format.groupings));
  return path = (directory.path() / format.name).string();
}

}  // namespace paceline::testing
