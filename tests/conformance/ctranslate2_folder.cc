#include "tests/conformance/ctranslate2_folder.h"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr uint32_t kVersion = 6;
constexpr uint8_t kFloat16 = 4;
constexpr uint8_t kInt16 = 2;

struct Variable {
  std::vector<uint32_t> shape;
  uint8_t type = 0;
  absl::string_view bytes;
};

// Little-endian fields of a file in memory.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {}

  absl::StatusOr<absl::string_view> Take(size_t size) {
    if (size > bytes_.size()) {
      return absl::InvalidArgumentError("model.bin: cut short");
    }
    const absl::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  absl::StatusOr<uint32_t> Integer(size_t size) {
    LANEWISE_ASSIGN_OR_RETURN(const absl::string_view taken, Take(size));
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i) {
      value |= uint32_t{static_cast<uint8_t>(taken[i])} << (8 * i);
    }
    return value;
  }
  // With its length before it and a zero at its end.
  absl::StatusOr<std::string> String() {
    LANEWISE_ASSIGN_OR_RETURN(const uint32_t size, Integer(2));
    LANEWISE_ASSIGN_OR_RETURN(absl::string_view text, Take(size));
    return std::string(text.substr(0, text.find('\0')));
  }

 private:
  absl::string_view bytes_;
};

absl::StatusOr<std::map<std::string, Variable>> ReadVariables(
    absl::string_view bytes) {
  Reader reader(bytes);
  LANEWISE_ASSIGN_OR_RETURN(const uint32_t version, reader.Integer(4));
  LANEWISE_ASSIGN_OR_RETURN(const std::string spec, reader.String());
  LANEWISE_RETURN_IF_ERROR(reader.Integer(4).status());  // its revision
  if (version != kVersion || spec != "WhisperSpec") {
    return absl::InvalidArgumentError(
        absl::StrCat("model.bin: expected WhisperSpec in version ", kVersion,
                     ", found ", spec, " in ", version));
  }
  LANEWISE_ASSIGN_OR_RETURN(const uint32_t count, reader.Integer(4));
  std::map<std::string, Variable> variables;
  for (uint32_t i = 0; i < count; ++i) {
    LANEWISE_ASSIGN_OR_RETURN(const std::string name, reader.String());
    Variable variable;
    LANEWISE_ASSIGN_OR_RETURN(const uint32_t rank, reader.Integer(1));
    for (uint32_t d = 0; d < rank; ++d) {
      LANEWISE_ASSIGN_OR_RETURN(const uint32_t size, reader.Integer(4));
      variable.shape.push_back(size);
    }
    LANEWISE_ASSIGN_OR_RETURN(const uint32_t type, reader.Integer(1));
    variable.type = static_cast<uint8_t>(type);
    LANEWISE_ASSIGN_OR_RETURN(const uint32_t size, reader.Integer(4));
    LANEWISE_ASSIGN_OR_RETURN(variable.bytes, reader.Take(size));
    variables[name] = variable;
  }
  return variables;
}

// Tensors of a folder, of f16, in the order they are added.
class Tensors {
 public:
  explicit Tensors(const std::map<std::string, Variable>& variables)
      : variables_(variables) {}

  // Part `index` of `parts` that lie one after the other along the first axis.
  absl::Status Add(const std::string& from, const std::string& to,
                   size_t index = 0, size_t parts = 1) {
    const auto found = variables_.find(from);
    if (found == variables_.end() || found->second.type != kFloat16 ||
        found->second.shape.empty() || found->second.shape[0] % parts != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("model.bin: expected f16 values of ", from));
    }
    std::vector<uint32_t> shape = found->second.shape;
    shape[0] /= static_cast<uint32_t>(parts);
    const size_t size = found->second.bytes.size() / parts;
    header_[to] = {{"dtype", "F16"},
                   {"shape", shape},
                   {"data_offsets", {data_.size(), data_.size() + size}}};
    data_ += found->second.bytes.substr(index * size, size);
    return absl::OkStatus();
  }

  absl::Status AddAffine(const std::string& from, const std::string& to,
                         size_t index = 0, size_t parts = 1) {
    LANEWISE_RETURN_IF_ERROR(
        Add(from + "/weight", to + ".weight", index, parts));
    if (absl::EndsWith(to, "k_proj")) return absl::OkStatus();  // has none
    return Add(from + "/bias", to + ".bias", index, parts);
  }

  absl::Status AddNorm(const std::string& from, const std::string& to) {
    LANEWISE_RETURN_IF_ERROR(Add(from + "/gamma", to + ".weight"));
    return Add(from + "/beta", to + ".bias");
  }

  std::string File() const {
    std::string header = header_.dump();
    header.append((8 - header.size() % 8) % 8, ' ');
    std::string file;
    for (size_t i = 0; i < 8; ++i) {
      file += static_cast<char>(uint64_t{header.size()} >> (8 * i));
    }
    return file + header + data_;
  }

 private:
  const std::map<std::string, Variable>& variables_;
  nlohmann::ordered_json header_ = nlohmann::ordered_json::object();
  std::string data_;
};

absl::Status AddLayer(const std::string& from, const std::string& to,
                      bool cross, Tensors* tensors) {
  const std::string self = from + "/self_attention";
  LANEWISE_RETURN_IF_ERROR(
      tensors->AddNorm(self + "/layer_norm", to + ".self_attn_layer_norm"));
  const char* const names[] = {"q_proj", "k_proj", "v_proj"};
  for (size_t i = 0; i < 3; ++i) {
    LANEWISE_RETURN_IF_ERROR(tensors->AddAffine(
        self + "/linear_0", to + ".self_attn." + names[i], i, 3));
  }
  LANEWISE_RETURN_IF_ERROR(
      tensors->AddAffine(self + "/linear_1", to + ".self_attn.out_proj"));
  if (cross) {
    const std::string other = from + "/attention";
    LANEWISE_RETURN_IF_ERROR(tensors->AddNorm(other + "/layer_norm",
                                              to + ".encoder_attn_layer_norm"));
    LANEWISE_RETURN_IF_ERROR(
        tensors->AddAffine(other + "/linear_0", to + ".encoder_attn.q_proj"));
    for (size_t i = 0; i < 2; ++i) {
      LANEWISE_RETURN_IF_ERROR(tensors->AddAffine(
          other + "/linear_1", to + ".encoder_attn." + names[i + 1], i, 2));
    }
    LANEWISE_RETURN_IF_ERROR(
        tensors->AddAffine(other + "/linear_2", to + ".encoder_attn.out_proj"));
  }
  LANEWISE_RETURN_IF_ERROR(
      tensors->AddNorm(from + "/ffn/layer_norm", to + ".final_layer_norm"));
  LANEWISE_RETURN_IF_ERROR(
      tensors->AddAffine(from + "/ffn/linear_0", to + ".fc1"));
  return tensors->AddAffine(from + "/ffn/linear_1", to + ".fc2");
}

size_t CountLayers(const std::map<std::string, Variable>& variables,
                   const std::string& stack) {
  size_t count = 0;
  while (variables.count(absl::StrCat(stack, "/layer_", count,
                                      "/ffn/linear_0/weight")) > 0) {
    ++count;
  }
  return count;
}

absl::StatusOr<nlohmann::json> Config(
    const std::map<std::string, Variable>& variables) {
  const auto shape = [&](const std::string& name, size_t axis) -> size_t {
    const auto found = variables.find(name);
    if (found == variables.end() || axis >= found->second.shape.size()) {
      return 0;
    }
    return found->second.shape[axis];
  };
  nlohmann::json config = {
      {"model_type", "whisper"},
      {"architectures", {"WhisperForConditionalGeneration"}},
      {"activation_function", "gelu"},
      {"scale_embedding", false},
      {"is_encoder_decoder", true},
      {"tie_word_embeddings", true}};
  config["vocab_size"] = shape("decoder/embeddings/weight", 0);
  config["d_model"] = shape("decoder/embeddings/weight", 1);
  config["num_mel_bins"] = shape("encoder/conv1/weight", 1);
  config["max_source_positions"] =
      shape("encoder/position_encodings/encodings", 0);
  config["max_target_positions"] =
      shape("decoder/position_encodings/encodings", 0);
  for (const char* stack : {"encoder", "decoder"}) {
    const std::string name = stack;
    config[name + "_layers"] = CountLayers(variables, name);
    config[name + "_ffn_dim"] = shape(name + "/layer_0/ffn/linear_0/weight", 0);
    const auto heads = variables.find(name + "/num_heads");
    if (heads == variables.end() || heads->second.type != kInt16 ||
        heads->second.bytes.size() != 2) {
      return absl::InvalidArgumentError("model.bin: expected num_heads");
    }
    config[name + "_attention_heads"] =
        static_cast<uint8_t>(heads->second.bytes[0]);
  }
  return config;
}

absl::Status WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream stream(path, std::ios::binary);
  stream << bytes;
  stream.close();
  return stream ? absl::OkStatus()
                : absl::InternalError(absl::StrCat("cannot write ", path));
}

}  // namespace

absl::Status WriteWhisperFolder(const std::string& model_bin,
                                const std::string& folder) {
  std::ifstream stream(model_bin, std::ios::binary);
  if (!stream) return absl::NotFoundError(absl::StrCat("no file ", model_bin));
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  LANEWISE_ASSIGN_OR_RETURN(const auto variables, ReadVariables(bytes));
  LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json config, Config(variables));
  Tensors tensors(variables);
  LANEWISE_RETURN_IF_ERROR(tensors.Add("decoder/embeddings/weight",
                                       "model.decoder.embed_tokens.weight"));
  for (const char* stack : {"encoder", "decoder"}) {
    const std::string from = stack, to = absl::StrCat("model.", stack);
    LANEWISE_RETURN_IF_ERROR(tensors.Add(from + "/position_encodings/encodings",
                                         to + ".embed_positions.weight"));
    LANEWISE_RETURN_IF_ERROR(
        tensors.AddNorm(from + "/layer_norm", to + ".layer_norm"));
    for (size_t i = 0; i < CountLayers(variables, from); ++i) {
      LANEWISE_RETURN_IF_ERROR(AddLayer(absl::StrCat(from, "/layer_", i),
                                        absl::StrCat(to, ".layers.", i),
                                        from == "decoder", &tensors));
    }
  }
  for (const char* conv : {"conv1", "conv2"}) {
    LANEWISE_RETURN_IF_ERROR(tensors.AddAffine(
        absl::StrCat("encoder/", conv), absl::StrCat("model.encoder.", conv)));
  }
  LANEWISE_RETURN_IF_ERROR(WriteFile(folder + "/config.json", config.dump()));
  return WriteFile(folder + "/model.safetensors", tensors.File());
}

}  // namespace lanewise
