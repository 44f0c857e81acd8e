// Reported faults between text and model: beginning tokens, tokenizer files.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lanewise/engine.h"
#include "tests/model/model_folder.h"

namespace lanewise {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int32_t kBos = 1;  // <s> of tests/data/models/llama

// How often the beginning token is in the prompt of one message, and whether it
// is the first one.
struct Beginning {
  int count = 0;
  bool first = false;
};

Beginning BeginningWith(const std::string& chat_template) {
  ModelFolder folder("llama");
  folder.Write("chat_template.jinja", chat_template);
  const auto engine = Engine::Load(folder.path(), {});
  EXPECT_TRUE(engine.ok()) << engine.status();
  GenerateRequest request;
  request.messages = {{"user", "Hello"}};
  const auto ids = (*engine)->PromptIds(request);
  EXPECT_TRUE(ids.ok()) << ids.status();
  if (!ids.ok() || ids->empty()) return {};
  return {static_cast<int>(std::count(ids->begin(), ids->end(), kBos)),
          ids->front() == kBos};
}

TEST(PromptFaults, T29OneBeginningTokenWhoeverWritesIt) {
  const std::string rest =
      "{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}";
  for (const std::string start :
       {"", "{{ bos_token }}", "{{- bos_token -}}\n", "<s>",
        "{% if true %}{{ bos_token }}{% endif %}"}) {
    const Beginning found = BeginningWith(start + rest);
    EXPECT_EQ(found.count, 1) << start;
    EXPECT_TRUE(found.first) << start;
  }
}

TEST(PromptFaults, T29APlainPromptGetsOneToo) {
  const auto engine = Engine::Load("tests/data/models/llama", {});
  ASSERT_TRUE(engine.ok()) << engine.status();
  GenerateRequest request;
  request.prompt = "Hello";
  const auto ids = (*engine)->PromptIds(request);
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(std::count(ids->begin(), ids->end(), kBos), 1);
}

// Folders as they were before tokenizer.json: the error says what is there, why
// that is not enough, and what is needed.
TEST(PromptFaults, M25FoldersWithoutATokenizerFileSayWhichOneIsNeeded) {
  for (const char* name :
       {"sentencepiece.bpe.model", "tokenizer.model", "spiece.model",
        "vocab.json", "vocab.txt", "source.spm"}) {
    ModelFolder folder("llama");
    folder.Remove("tokenizer.json");
    folder.Write(name, "\n\x0E\n\x05<unk>\x15");
    const auto engine = Engine::Load(folder.path(), {});
    ASSERT_FALSE(engine.ok());
    EXPECT_THAT(std::string(engine.status().message()),
                AllOf(HasSubstr(folder.path()), HasSubstr("tokenizer.json"),
                      HasSubstr(name)));
  }
  ModelFolder folder("llama");
  folder.Remove("tokenizer.json");
  const auto engine = Engine::Load(folder.path(), {});
  ASSERT_FALSE(engine.ok());
  EXPECT_THAT(std::string(engine.status().message()),
              AllOf(HasSubstr(folder.path() + "/tokenizer.json"),
                    Not(HasSubstr("sentencepiece"))));
}

}  // namespace
}  // namespace lanewise
