#include <iostream>

#include "lanewise/engine.h"

int main(int argc, char** argv) {
  auto engine = lanewise::Engine::Load(argc > 1 ? argv[1] : "", {});
  if (!engine.ok()) return std::cerr << engine.status() << "\n", 1;
  lanewise::GenerateRequest request;
  request.prompt = "The quick brown fox";
  request.hash_logits = true;
  auto result = (*engine)->Generate(request, {});
  if (!result.ok()) return std::cerr << result.status() << "\n", 1;
  std::cout << result->text << "\n" << result->logits_hash << "\n";
}
