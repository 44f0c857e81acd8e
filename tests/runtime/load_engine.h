// Loading an engine in a test.
#ifndef LANEWISE_TESTS_RUNTIME_LOAD_ENGINE_H_
#define LANEWISE_TESTS_RUNTIME_LOAD_ENGINE_H_

#include <memory>
#include <string>

#include "lanewise/engine.h"

namespace lanewise {

// A failure of the test and null when it does not load.
std::unique_ptr<Engine> LoadEngine(const std::string& path,
                                   const EngineOptions& options = {});

// `text` as it is, with a hash of all logits.
GenerateRequest Prompt(const std::string& text, size_t max_tokens = 12);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_RUNTIME_LOAD_ENGINE_H_
