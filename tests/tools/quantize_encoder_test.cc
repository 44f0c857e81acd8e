// The program `quantize` on folders of encoders.
#include <stdio.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "golden_root.h"
#include "gtest/gtest.h"
#include "model/executor.h"
#include "model/format/checkpoint.h"
#include "model/model.h"
#include "tests/model/model_folder.h"
#include "tools/quantize.h"

namespace lanewise {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class QuantizeEncoderTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/quantize_encoder";
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }

  std::string out() const { return folder_ + "/out.gguf"; }

  // Without a tokenizer. What the program says of the folder.
  std::string Quantize(const std::string& model, int exit_code) {
    FILE* results = tmpfile();
    FILE* notices = tmpfile();
    Invocation call;
    call.program = "quantize";
    call.arguments = {"--model", model, "--out",         out(),
                      "--type",  "f32", "--no_tokenizer"};
    call.io = {0, fileno(results), fileno(notices)};
    EXPECT_EQ(QuantizeModel(call), exit_code) << model;
    std::string text;
    rewind(notices);
    char block[4096];
    for (size_t n; (n = fread(block, 1, sizeof(block), notices)) > 0;) {
      text.append(block, n);
    }
    fclose(results);
    fclose(notices);
    return text;
  }

  std::string folder_;
};

// Of a fixed text, all rows.
std::vector<float> HiddenStates(const std::string& path, ActivationType type) {
  const auto checkpoint = Checkpoint::Open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  if (!checkpoint.ok()) return {};
  const auto context = std::move(Context::Create({})).value();
  const auto model = Model::Load(**checkpoint, *context, {});
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return {};
  Executor::Options options;
  options.activations = type;
  const auto executor = Executor::Create(**model, *context, options);
  EXPECT_TRUE(executor.ok()) << executor.status();
  std::vector<int32_t> ids, types;
  for (int32_t i = 0; i < 41; ++i) {
    ids.push_back(3 + i * 37 % 250);
    types.push_back(i / 25);
  }
  std::vector<float> hidden(ids.size() * (*model)->spec().width);
  Executor::Entry entry;
  entry.ids = ids;
  entry.type_ids = types;
  Executor::Outputs outputs;
  outputs.hidden = hidden.data();
  EXPECT_TRUE((*executor)->Forward({&entry, 1}, outputs).ok());
  return hidden;
}

void ExpectSameRows(const std::string& a, const std::string& b) {
  for (const ActivationType type :
       {ActivationType::kF32, ActivationType::kNative}) {
    const std::vector<float> x = HiddenStates(a, type);
    const std::vector<float> y = HiddenStates(b, type);
    ASSERT_FALSE(x.empty());
    ASSERT_EQ(x.size(), y.size());
    EXPECT_EQ(std::memcmp(x.data(), y.data(), x.size() * sizeof(float)), 0);
  }
}

TEST_F(QuantizeEncoderTest, BertAsF32GivesTheFoldersRowsBitForBit) {
  const std::string folder = "tests/data/models/bert";
  EXPECT_THAT(Quantize(folder, 0), HasSubstr("pooler.dense.weight: left out"));
  ExpectSameRows(folder, out());
  const auto checkpoint = Checkpoint::Open(out());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const Metadata& metadata = (*checkpoint)->metadata();
  EXPECT_EQ(*metadata.GetUint("tokenizer.ggml.token_type_count", 9), 2u);
  EXPECT_FALSE(*metadata.GetBool("bert.attention.causal"));
}

TEST_F(QuantizeEncoderTest, NomicBertAsF32GivesTheFoldersRowsBitForBit) {
  const char* named = std::getenv("LANEWISE_GOLDEN");
  const std::string golden = named != nullptr ? named : kGoldenRoot;
  if (golden.empty()) GTEST_SKIP() << "the suite of goldens is not here";
  const std::string folder = golden + "/models/encoder/nomic_bert";
  Quantize(folder, 0);
  ExpectSameRows(folder, out());
}

TEST_F(QuantizeEncoderTest, OlderNamesOfNormsAreFound) {
  ModelFolder folder("bert");
  folder.EditTensors([](nlohmann::ordered_json& header) {
    nlohmann::ordered_json renamed;
    for (const auto& [name, tensor] : header.items()) {
      std::string other = name;
      const size_t at = other.find("LayerNorm.");
      if (at != other.npos) {
        other.replace(at + 10, other.npos,
                      other.back() == 't' ? "gamma" : "beta");
      }
      renamed[other] = tensor;
    }
    header = renamed;
  });
  Quantize(folder.path(), 0);
  ExpectSameRows("tests/data/models/bert", out());
}

TEST_F(QuantizeEncoderTest, HeadsThatGgufHasNotAreErrors) {
  EXPECT_THAT(Quantize("tests/data/models/bert_seqcls", 1),
              HasSubstr("has no key for a part of this model"));
  EXPECT_THAT(Quantize("tests/data/models/albert", 1), HasSubstr("albert"));
  EXPECT_FALSE(fs::exists(out()));
}

}  // namespace
}  // namespace lanewise
