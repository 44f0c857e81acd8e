#include "tools/default_model.h"
#include "tools/tokenize.h"

int main(int argc, char** argv) {
  return lanewise::Tokenize(lanewise::MakeInvocation("tokenize", argc, argv,
                                                     lanewise::DefaultModel()));
}
