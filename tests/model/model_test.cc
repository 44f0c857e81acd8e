// Loading models: what a contradictory, incomplete or unknown model gets.
#include "model/model.h"

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/families/family.h"
#include "model/format/checkpoint.h"
#include "tests/model/model_folder.h"

namespace lanewise {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

absl::StatusOr<std::unique_ptr<const Model>> Load(const std::string& path) {
  auto checkpoint = Checkpoint::Open(path);
  if (!checkpoint.ok()) return checkpoint.status();
  auto context = Context::Create({});
  if (!context.ok()) return context.status();
  return Model::Load(**checkpoint, **context, {});
}

std::string LoadError(const ModelFolder& folder) {
  const auto model = Load(folder.path());
  EXPECT_FALSE(model.ok());
  return std::string(model.status().message());
}

TEST(Model, LoadsAFolderWithoutNotices) {
  const auto model = Load("tests/data/models/llama");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT((*model)->notices(), IsEmpty());
  EXPECT_EQ((*model)->spec().layers.size(), 3u);
  EXPECT_FALSE((*model)->spec().head.tied);
}

TEST(Model, LegacyConfigGivesTheSameSpec) {
  for (const char* name : {"llama", "llama_bias_tied", "gpt2"}) {
    ModelFolder folder(name);
    const auto expected = Load(folder.path());
    ASSERT_TRUE(expected.ok()) << expected.status();
    folder.Write("config.json", folder.Read("config.legacy.json"));
    const auto found = Load(folder.path());
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(SpecToString((*found)->spec()),
              SpecToString((*expected)->spec()));
  }
}

TEST(Model, UnknownArchitectureIsNamedAndTheKnownOnesListed) {
  ModelFolder folder("llama");
  folder.EditJson("config.json",
                  [](auto& json) { json["model_type"] = "perceiver9"; });
  EXPECT_THAT(LoadError(folder),
              AllOf(HasSubstr("model_type"), HasSubstr("perceiver9"),
                    HasSubstr("gpt2"), HasSubstr("llama")));
}

TEST(Model, UnknownGgufArchitectureIsNamed) {
  std::ifstream in("tests/data/gguf/arch_llama/model.gguf", std::ios::binary);
  std::stringstream stream;
  stream << in.rdbuf();
  std::string bytes = stream.str();
  const std::string key = "general.architecture";
  const size_t value = bytes.find(key) + key.size() + 4 + 8;  // type, length
  ASSERT_EQ(bytes.substr(value, 5), "llama");
  bytes.replace(value, 5, "alpak");
  const auto checkpoint = Checkpoint::FromBytes(
      "x.gguf", std::vector<uint8_t>(bytes.begin(), bytes.end()));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto family = FindFamily(**checkpoint);
  ASSERT_FALSE(family.ok());
  EXPECT_THAT(std::string(family.status().message()),
              AllOf(HasSubstr("general.architecture"), HasSubstr("alpak"),
                    HasSubstr("llama"), HasSubstr("qwen3")));
}

TEST(Model, MoreExpertsPerTokenThanExperts) {
  ModelFolder folder("gpt_oss");
  folder.EditJson("config.json",
                  [](auto& json) { json["num_experts_per_tok"] = 6; });
  EXPECT_THAT(LoadError(folder),
              HasSubstr("experts per token: expected 1 to the 5 experts, "
                        "found 6"));
}

TEST(Model, StackOfFewerExpertsThanTheConfiguration) {
  ModelFolder folder("gpt_oss");
  folder.EditJson("config.json",
                  [](auto& json) { json["num_local_experts"] = 6; });
  EXPECT_THAT(LoadError(folder),
              AllOf(HasSubstr("mlp.router.weight"), HasSubstr("[6, 48]"),
                    HasSubstr("[5, 48]")));
}

TEST(Model, SinksThatAreMissingAreNamed) {
  ModelFolder folder("gpt_oss");
  folder.EditTensors([](auto& header) {
    header["model.layers.2.self_attn.sinkz"] =
        header["model.layers.2.self_attn.sinks"];
    header.erase("model.layers.2.self_attn.sinks");
  });
  EXPECT_THAT(LoadError(folder), HasSubstr("model.layers.2.self_attn.sinks"));
}

TEST(Model, OfTwoNamesOfOneSlotTheFirstIsMissing) {
  ModelFolder folder("falcon_new");
  folder.EditTensors([](auto& header) {
    header["transformer.h.0.ln_mlq.weight"] =
        header["transformer.h.0.ln_mlp.weight"];
    header.erase("transformer.h.0.ln_mlp.weight");
  });
  EXPECT_THAT(LoadError(folder),
              HasSubstr("transformer.h.0.post_attention_layernorm.weight"));
}

TEST(Model, OddRotarySizeIsAnError) {
  ModelFolder folder("gemma3");
  folder.EditJson("config.json", [](auto& json) {
    json["partial_rotary_factor"] = 0.45;  // 7 of 16
  });
  EXPECT_THAT(LoadError(folder), HasSubstr("rotary size: expected an even"));
}

TEST(Model, UnknownActivationIsNamed) {
  ModelFolder folder("llama");
  folder.EditJson("config.json",
                  [](auto& json) { json["hidden_act"] = "wiggle"; });
  EXPECT_THAT(LoadError(folder),
              AllOf(HasSubstr("config.json"), HasSubstr("hidden_act"),
                    HasSubstr("wiggle"), HasSubstr("silu")));
}

TEST(Model, M22UnknownRopeTypeIsNamed) {
  ModelFolder folder("llama");
  folder.EditJson("config.json", [](auto& json) {
    json["rope_parameters"]["rope_type"] = "spiral";
  });
  EXPECT_THAT(LoadError(folder), AllOf(HasSubstr("rope_parameters"),
                                       HasSubstr("spiral"), HasSubstr("yarn")));
}

TEST(Model, MissingTensorIsNamed) {
  ModelFolder folder("llama");
  folder.EditTensors([](auto& header) {
    header["model.layers.1.mlp.down_prox.weight"] =
        header["model.layers.1.mlp.down_proj.weight"];
    header.erase("model.layers.1.mlp.down_proj.weight");
  });
  EXPECT_THAT(LoadError(folder),
              AllOf(HasSubstr("model.layers.1.mlp.down_proj.weight"),
                    HasSubstr(folder.path())));
}

TEST(Model, L31NamesOfAnotherKindListTheFirstMissingTensor) {
  ModelFolder folder("llama");
  folder.EditTensors([](auto& header) {
    nlohmann::ordered_json renamed;
    for (auto& [name, value] : header.items()) {
      renamed[name == "__metadata__" ? name : "x." + name] = value;
    }
    header = renamed;
  });
  EXPECT_THAT(LoadError(folder), HasSubstr("embed_tokens.weight"));
}

TEST(Model, WrongShapeSaysExpectedAndFound) {
  ModelFolder folder("llama");
  folder.EditJson("config.json",
                  [](auto& json) { json["intermediate_size"] = 99; });
  EXPECT_THAT(LoadError(folder),
              AllOf(HasSubstr("gate_proj.weight"), HasSubstr("[99, 48]"),
                    HasSubstr("[100, 48]")));
}

TEST(Model, HeadsThatDoNotDivideAreAnError) {
  ModelFolder folder("llama");
  folder.EditJson("config.json",
                  [](auto& json) { json["num_key_value_heads"] = 4; });
  EXPECT_THAT(LoadError(folder), HasSubstr("divisor of the 6 heads"));
}

TEST(Model, SizesThatAreNoNumbersAreErrors) {
  for (const char* key :
       {"hidden_size", "num_hidden_layers", "num_attention_heads",
        "intermediate_size", "vocab_size", "max_position_embeddings",
        "head_dim", "num_key_value_heads"}) {
    for (const nlohmann::json& value :
         {nlohmann::json("12"), nlohmann::json(-1), nlohmann::json(0),
          nlohmann::json(uint64_t{1} << 60), nlohmann::json(1.5),
          nlohmann::json::array()}) {
      ModelFolder folder("llama");
      folder.EditJson("config.json", [&](auto& json) { json[key] = value; });
      EXPECT_THAT(LoadError(folder), Not(IsEmpty())) << key << " " << value;
    }
  }
}

TEST(Model, L28OutputMatrixOfATiedModelIsIgnoredWithANotice) {
  ModelFolder folder("llama");
  folder.EditJson("config.json",
                  [](auto& json) { json["tie_word_embeddings"] = true; });
  const auto model = Load(folder.path());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE((*model)->spec().head.tied);
  EXPECT_THAT((*model)->notices(),
              Contains(AllOf(HasSubstr("lm_head.weight"),
                             HasSubstr("tie_word_embeddings"))));
}

TEST(Model, L29TiesByPresenceOfTheTensor) {
  ModelFolder folder("llama_bias_tied");
  folder.EditJson("config.json",
                  [](auto& json) { json["tie_word_embeddings"] = false; });
  const auto model = Load(folder.path());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE((*model)->spec().head.tied);
  EXPECT_THAT((*model)->notices(), Contains(HasSubstr("token embedding")));
}

TEST(Model, BuffersOfOlderFoldersAreIgnored) {
  const auto model = Load("tests/data/models/gpt2_hubstyle");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT((*model)->notices(), IsEmpty());
}

TEST(Model, TensorsTheFamilyDoesNotUseAreSaidOnce) {
  ModelFolder folder("gpt2");
  folder.EditTensors([](auto& header) {
    header["transformer.extra.weight"] = {
        {"dtype", "F32"}, {"shape", {0}}, {"data_offsets", {0, 0}}};
  });
  const auto model = Load(folder.path());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT((*model)->notices(),
              Contains(HasSubstr("transformer.extra.weight")));
}

// Encoders: what contradicts a configuration is named too.
TEST(EncoderModel, TablesOfAnotherSizeSayExpectedAndFound) {
  ModelFolder folder("deberta_v2_conv");
  folder.EditJson("config.json",
                  [](auto& json) { json["position_buckets"] = 8; });
  EXPECT_THAT(
      LoadError(folder),
      AllOf(HasSubstr("model.safetensors"),
            HasSubstr("encoder.rel_embeddings.weight"),
            HasSubstr("expected shape [16, 48]"), HasSubstr("found [32, 48]")));
}

TEST(EncoderModel, KernelOfAnotherSizeSaysExpectedAndFound) {
  ModelFolder folder("deberta_v2_conv");
  folder.EditJson("config.json",
                  [](auto& json) { json["conv_kernel_size"] = 5; });
  EXPECT_THAT(LoadError(folder),
              AllOf(HasSubstr("encoder.conv.conv.weight"),
                    HasSubstr("[48, 48, 5]"), HasSubstr("[48, 48, 3]")));
}

TEST(EncoderModel, ProjectionsOfRelativePositionsThatAreMissingAreNamed) {
  ModelFolder folder("deberta_v2_conv");
  folder.EditJson("config.json",
                  [](auto& json) { json["share_att_key"] = false; });
  EXPECT_THAT(LoadError(folder),
              HasSubstr("encoder.layer.0.attention.self.pos_key_proj.weight"));
}

TEST(EncoderModel, LabelsWithoutAHeadNameTheTensorThatIsMissing) {
  ModelFolder folder("albert");
  folder.EditJson("config.json", [](auto& json) {
    json["architectures"] = {"AlbertForSequenceClassification"};
    json["id2label"] = {{"0", "no"}, {"1", "yes"}};
  });
  EXPECT_THAT(LoadError(folder), HasSubstr("classifier.weight: expected by "
                                           "family albert, found none"));
}

TEST(EncoderModel, AMaskedTokenHeadThatIsNotThereIsLeftOutWithANotice) {
  ModelFolder folder("bert");
  folder.EditJson("config.json", [](auto& json) {
    json["architectures"] = {"BertForMaskedLM"};
  });
  const auto model = Load(folder.path());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->spec().head.task, HeadTask::kNone);
  EXPECT_THAT((*model)->notices(),
              Contains(HasSubstr("no tensor of the masked-token head")));
}

TEST(EncoderModel, AMaskedTokenHeadOfWhichAPartIsThereNamesTheRest) {
  ModelFolder folder("bert");
  folder.EditJson("config.json", [](auto& json) {
    json["architectures"] = {"BertForMaskedLM"};
  });
  folder.EditTensors([](auto& header) {
    header["cls.predictions.transform.dense.weight"] =
        header["pooler.dense.weight"];
    header.erase("pooler.dense.weight");
  });
  EXPECT_THAT(LoadError(folder),
              HasSubstr("cls.predictions.transform.dense.bias"));
}

TEST(EncoderModel, MoreGroupsThanStoredNameTheFirstThatIsMissing) {
  ModelFolder folder("albert");
  folder.EditJson("config.json",
                  [](auto& json) { json["num_hidden_groups"] = 3; });
  EXPECT_THAT(LoadError(folder), HasSubstr("albert_layer_groups.1."));
}

TEST(EncoderModel, TheNumbersOfRelativePositionsHaveLimits) {
  for (const auto& [key, value] :
       {std::pair<const char*, int64_t>{"max_position_embeddings", 1 << 20},
        {"max_relative_positions", 1 << 20}}) {
    ModelFolder folder("deberta_v2_conv");
    folder.EditJson("config.json",
                    [&, k = key, v = value](auto& json) { json[k] = v; });
    EXPECT_THAT(LoadError(folder), HasSubstr("65536")) << key;
  }
}

TEST(Model, SpecSnapshots) {
  const auto llama = Load("tests/data/gguf/llama_q4_k_m");
  ASSERT_TRUE(llama.ok()) << llama.status();
  EXPECT_EQ(SpecToString((*llama)->spec()),
            "family: llama\nvocabulary: 270\nwidth: 256\npositions: 128\n"
            "embedding scale: 1\nembedding norm: none\n"
            "rope 0: 32 of a head, halves, theta 10000, scaling none\n"
            "layers 0 to 0:\n"
            "  attention norm, input: RMSNorm, eps 1e-05\n"
            "  attention: 8 heads, 2 key/value heads of 32 and 32, scale "
            "0.176777, causal, rope 0\n"
            "  ffn norm, input: RMSNorm, eps 1e-05\n"
            "  ffn: 256, silu, gated\n"
            "final norm: RMSNorm, eps 1e-05\nhead: tied\n");
  const auto gpt2 = Load("tests/data/models/gpt2");
  ASSERT_TRUE(gpt2.ok()) << gpt2.status();
  EXPECT_EQ(SpecToString((*gpt2)->spec()),
            "family: gpt2\nvocabulary: 512\nwidth: 48\npositions: 96, learned\n"
            "embedding scale: 1\nembedding norm: none\n"
            "layers 0 to 2:\n"
            "  attention norm, input: LayerNorm with bias, eps 1e-05\n"
            "  attention: 4 heads, 4 key/value heads of 12 and 12, scale "
            "0.288675, causal, qkv bias, output bias\n"
            "  ffn norm, input: LayerNorm with bias, eps 1e-05\n"
            "  ffn: 192, gelu tanh, bias\n"
            "final norm: LayerNorm with bias, eps 1e-05\nhead: tied\n");
}

}  // namespace
}  // namespace lanewise
