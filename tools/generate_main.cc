#include "tools/default_model.h"
#include "tools/generate.h"

int main(int argc, char** argv) {
  return lanewise::Generate(lanewise::MakeInvocation("generate", argc, argv,
                                                     lanewise::DefaultModel()));
}
