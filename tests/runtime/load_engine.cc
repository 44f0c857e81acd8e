#include "tests/runtime/load_engine.h"

#include "gtest/gtest.h"

namespace lanewise {

std::unique_ptr<Engine> LoadEngine(const std::string& path,
                                   const EngineOptions& options) {
  auto engine = Engine::Load(path, options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return engine.ok() ? *std::move(engine) : nullptr;
}

GenerateRequest Prompt(const std::string& text, size_t max_tokens) {
  GenerateRequest request;
  request.prompt = text;
  request.max_tokens = max_tokens;
  request.hash_logits = true;
  return request;
}

}  // namespace lanewise
