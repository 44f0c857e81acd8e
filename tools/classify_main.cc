#include "tools/classify.h"

// There is no default model: what the labels are is the caller's matter.
int main(int argc, char** argv) {
  return lanewise::ClassifyTexts(
      lanewise::MakeInvocation("classify", argc, argv, ""));
}
