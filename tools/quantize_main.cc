#include "tools/quantize.h"

int main(int argc, char** argv) {
  return lanewise::QuantizeModel(
      lanewise::MakeInvocation("quantize", argc, argv, ""));
}
